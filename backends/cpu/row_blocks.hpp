// SPDX-License-Identifier: Apache-2.0
// How rows are cut into blocks whose column sums are joined in order.
//
// Invariant: the cut depends on the number of rows alone, so sums have the same bits on any number
// of threads, and in a kernel of one node as in one of a group.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradrack::cpu {

/// Rows of a block: at least 32, and no more than 16 blocks.
inline int64_t sum_block_rows(int64_t rows) { return std::max<int64_t>(32, (rows + 15) / 16); }

}  // namespace gradrack::cpu
