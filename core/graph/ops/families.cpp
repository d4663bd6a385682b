// SPDX-License-Identifier: Apache-2.0
// Fills the registry with every family of built-in operators: see families.hpp.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_builtin_ops(OpRegistry& ops) {
  GR_TRY(add_unary_ops(ops));
  GR_TRY(add_binary_ops(ops));
  GR_TRY(add_arithmetic_ops(ops));
  GR_TRY(add_more_activation_ops(ops));
  GR_TRY(add_trigonometry_ops(ops));
  GR_TRY(add_matmul_ops(ops));
  GR_TRY(add_shape_ops(ops));
  GR_TRY(add_slice_ops(ops));
  GR_TRY(add_index_ops(ops));
  GR_TRY(add_index_nd_ops(ops));
  GR_TRY(add_fill_ops(ops));
  GR_TRY(add_scan_ops(ops));
  GR_TRY(add_order_by_ops(ops));
  GR_TRY(add_rearrange_ops(ops));
  GR_TRY(add_reduce_ops(ops));
  GR_TRY(add_softmax_ops(ops));
  GR_TRY(add_norm_ops(ops));
  GR_TRY(add_batch_norm_ops(ops));
  GR_TRY(add_conv_ops(ops));
  GR_TRY(add_pool_ops(ops));
  GR_TRY(add_more_norm_ops(ops));
  GR_TRY(add_conv_transpose_ops(ops));
  GR_TRY(add_resize_ops(ops));
  GR_TRY(add_pad_mode_ops(ops));
  GR_TRY(add_grid_sample_ops(ops));
  GR_TRY(add_einsum_ops(ops));
  GR_TRY(add_recurrent_ops(ops));
  GR_TRY(add_attention_ops(ops));
  GR_TRY(add_rotary_ops(ops));
  GR_TRY(add_loss_ops(ops));
  GR_TRY(add_random_ops(ops));
  GR_TRY(add_order_ops(ops));
  GR_TRY(add_update_ops(ops));
  return {};
}

}  // namespace gradrack
