// SPDX-License-Identifier: Apache-2.0
// Collects the families of the reference backend into one table.
#include "backends/reference/kernels.hpp"

#include "backends/common/widen.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::reference {
namespace {

template <class From, class To, class Convert>
auto each(Convert convert) {
  return [convert](const auto* from, auto* to, int64_t count) {
    const auto* x = static_cast<const From*>(static_cast<const void*>(from));
    auto* y = static_cast<To*>(static_cast<void*>(to));
    for (int64_t k = 0; k < count; ++k) y[k] = convert(x[k]);
  };
}

/// bfloat16 is computed in double, like the rest, and rounded once.
host::Widening bfloat16_in_double() {
  host::Widening w;
  w.wide = GR_FLOAT64;
  w.widen = each<uint16_t, double>([](uint16_t x) { return double{sdk::from_bfloat16(x)}; });
  w.narrow = each<double, uint16_t>([](double x) { return sdk::to_bfloat16(x); });
  w.widen_float = each<float, double>([](float x) { return double{x}; });
  w.narrow_float = each<double, float>([](double x) { return static_cast<float>(x); });
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
  host::add_widened(table, bfloat16_in_double());
}

}  // namespace gradrack::reference
