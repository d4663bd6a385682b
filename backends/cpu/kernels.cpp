// SPDX-License-Identifier: Apache-2.0
// Collects the families of the cpu backend. Order matters where two families know one operator:
// float32 loops stand before the generic ones, and what widens 16 bits for all comes last. Of
// groups the first to match has its nodes: runs of rows, which take what they find, come last.
#include "backends/cpu/kernels.hpp"

#include "backends/cpu/bfloat16.hpp"

namespace gradrack::cpu {

void add_all_kernels(host::KernelTable& table, const Context& context) {
  add_unary_kernels(table, context);
  add_binary_kernels(table, context);
  add_bfloat16_kernels(table, context);
  add_generic_kernels(table, context);
  add_bfloat16_conv_kernels(table, context);
  add_matmul_kernels(table, context);
  add_softmax_kernels(table, context);
  add_norm_kernels(table, context);
  add_reduce_kernels(table, context);
  add_order_by_kernels(table, context);
  add_move_kernels(table, context);
  add_slice_kernels(table, context);
  add_index_kernels(table, context);
  add_loss_kernels(table, context);
  add_linear_loss_groups(table, context);
  add_update_kernels(table, context);
  add_attention_kernels(table, context);
  add_rotary_kernels(table, context);
  add_flash_attention_kernels(table, context);
  add_conv_kernels(table, context);
  add_conv_weight_grad_kernels(table, context);
  add_pool_kernels(table, context);
  add_batch_norm_kernels(table, context);
  add_widened_kernels(table, context);
  add_swiglu_groups(table, context);
  add_product_groups(table, context);
  add_update_groups(table, context);
  add_row_groups(table, context);
}

std::string claim_float32(const host::NodeSpec& node) {
  return host::refuse_reals_except(node, {GR_FLOAT32});
}

std::string claim_float32_data(const host::NodeSpec& node) {
  if (node.inputs[0].dtype != GR_FLOAT32) {
    return "input 0 is " + host::dtype_text(node.inputs[0].dtype);
  }
  return claim_float32(node);
}

}  // namespace gradrack::cpu
