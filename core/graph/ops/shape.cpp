// SPDX-License-Identifier: Apache-2.0
// Operator entries: Reshape, Transpose, Squeeze, Expand, Shape and the like.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_shape_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
