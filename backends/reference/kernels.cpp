// SPDX-License-Identifier: Apache-2.0
// Collects the families of the reference backend into one table.
#include "backends/reference/kernels.hpp"

#include "backends/common/widen.hpp"

namespace gradrack::reference {
namespace {

template <class From, class To>
void convert(const void* from, void* to, int64_t count) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  for (int64_t k = 0; k < count; ++k) y[k] = static_cast<To>(x[k]);
}

/// 16 bits are computed in double, like the rest, and rounded once.
host::Widening in_double(gr_dtype_t narrow) {
  host::Widening w = host::widening_in<double>(narrow);
  w.widen_float = convert<float, double>;
  w.narrow_float = convert<double, float>;
  return w;
}

}  // namespace

void add_all_kernels(host::KernelTable& table) {
  add_unary_kernels(table);
  add_activation_kernels(table);
  add_cast_kernels(table);
  add_binary_kernels(table);
  add_matmul_kernels(table);
  add_shape_kernels(table);
  add_slice_kernels(table);
  add_index_kernels(table);
  add_order_by_kernels(table);
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
  for (const gr_dtype_t narrow : {GR_BFLOAT16, GR_FLOAT16}) {
    host::add_widened(table, in_double(narrow));
  }
}

}  // namespace gradrack::reference
