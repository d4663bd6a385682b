// SPDX-License-Identifier: Apache-2.0
// Operator entries: Dropout.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_random_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
