// SPDX-License-Identifier: Apache-2.0
// Attention and gradrack.AttentionGrad: which nodes are run whole, and by which code.
#include "backends/cpu/attention_shape.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack::cpu {
namespace {

using host::NodeSpec;

/// `q`: position of Q among the inputs.
std::string claim_attention(const NodeSpec& node, size_t q) {
  const gr_dtype_t dtype = node.inputs[q].dtype;
  std::string reason =
      dtype == GR_BFLOAT16 ? host::refuse_reals_except(node, {GR_BFLOAT16}) : claim_float32(node);
  if (!reason.empty()) return reason;
  if (node.inputs[q + 1].count == 0 || node.inputs[q + 2].count == 0) return "no keys or values";
  return "";
}

/// bfloat16, on a processor that multiplies it.
bool by_tiles(const NodeSpec& node, size_t q) {
  return node.inputs[q].dtype == GR_BFLOAT16 && has_bfloat16_attention();
}

}  // namespace

void add_flash_attention_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Attention", [](const NodeSpec& node) { return claim_attention(node, 0); },
             [&context](const NodeSpec& node) {
               return by_tiles(node, 0) ? make_bfloat16_attention(node, context)
                                        : make_float_attention(node, context);
             }});
  table.add({"gradrack.AttentionGrad",
             [](const NodeSpec& node) { return claim_attention(node, 1); },
             [&context](const NodeSpec& node) {
               return by_tiles(node, 1) ? make_bfloat16_attention_grad(node, context)
                                        : make_float_attention_grad(node, context);
             }});
}

}  // namespace gradrack::cpu
