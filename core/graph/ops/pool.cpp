// SPDX-License-Identifier: Apache-2.0
// Operator entries: MaxPool, AveragePool, GlobalAveragePool.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_pool_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
