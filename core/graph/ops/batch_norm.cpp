// SPDX-License-Identifier: Apache-2.0
// Operator entries: BatchNormalization.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_batch_norm_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
