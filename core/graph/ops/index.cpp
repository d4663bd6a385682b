// SPDX-License-Identifier: Apache-2.0
// Operator entries: Gather, GatherElements, ScatterElements.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_index_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
