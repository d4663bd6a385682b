// SPDX-License-Identifier: Apache-2.0
// Operator entries: Slice, Pad, Concat, Split.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_slice_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
