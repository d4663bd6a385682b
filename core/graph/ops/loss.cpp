// SPDX-License-Identifier: Apache-2.0
// Operator entries: SoftmaxCrossEntropyLoss.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_loss_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
