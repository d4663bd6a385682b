// SPDX-License-Identifier: Apache-2.0
// Collects the families of the reference backend into one table.
#include "backends/reference/kernels.hpp"

namespace gradrack::reference {

void add_all_kernels(host::KernelTable& table) {
  add_unary_kernels(table);
  add_activation_kernels(table);
  add_cast_kernels(table);
  add_binary_kernels(table);
  add_matmul_kernels(table);
  add_shape_kernels(table);
  add_slice_kernels(table);
  add_index_kernels(table);
  add_reduce_kernels(table);
  add_softmax_kernels(table);
  add_norm_kernels(table);
  add_batch_norm_kernels(table);
  add_conv_kernels(table);
  add_pool_kernels(table);
  add_attention_kernels(table);
  add_loss_kernels(table);
  add_random_kernels(table);
  add_update_kernels(table);
}

}  // namespace gradrack::reference
