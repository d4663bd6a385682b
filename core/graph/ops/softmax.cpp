// SPDX-License-Identifier: Apache-2.0
// Operator entries: Softmax, LogSoftmax and their gradients.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_softmax_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
