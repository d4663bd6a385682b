// SPDX-License-Identifier: Apache-2.0
// Operator entries: Conv and its two gradients.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_conv_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
