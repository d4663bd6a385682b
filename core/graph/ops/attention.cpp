// SPDX-License-Identifier: Apache-2.0
// Operator entries: RotaryEmbedding, Attention.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_attention_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
