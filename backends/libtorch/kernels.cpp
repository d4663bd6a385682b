// SPDX-License-Identifier: Apache-2.0
// Collects the families into one table, and says which library this is.
#include "backends/libtorch/kernels.hpp"

#include <torch/headeronly/version.h>

#include "backends/common/widen.hpp"

namespace gradrack::libtorch {
void add_all_kernels(host::KernelTable& table) {
  add_unary_kernels(table);
  add_activation_kernels(table);
  add_binary_kernels(table);
  add_matmul_kernels(table);
  add_move_kernels(table);
  add_slice_kernels(table);
  add_index_kernels(table);
  add_reduce_kernels(table);
  add_softmax_kernels(table);
  add_norm_kernels(table);
  add_batch_norm_kernels(table);
  add_conv_kernels(table);
  add_pool_kernels(table);
  add_attention_kernels(table);
  add_rotary_kernels(table);
  add_update_kernels(table);
  // Families that sum claim float32 and float64 alone: 16 bits go through float32 there.
  for (const gr_dtype_t narrow : {GR_BFLOAT16, GR_FLOAT16}) {
    host::add_widened(table, host::widening_in<float>(narrow));
  }
}

std::string library_text() { return "LibTorch " TORCH_VERSION; }

}  // namespace gradrack::libtorch
