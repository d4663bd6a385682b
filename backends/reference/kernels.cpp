// SPDX-License-Identifier: Apache-2.0
// Collects the families of the reference backend into one table.
#include "backends/reference/kernels.hpp"

#include "backends/common/widen.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

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

/// 16 bits are computed in double, like the rest, and rounded once.
template <class FromBits, class ToBits>
host::Widening in_double(gr_dtype_t narrow, FromBits from_bits, ToBits to_bits) {
  host::Widening w;
  w.narrow_dtype = narrow;
  w.wide = GR_FLOAT64;
  w.widen = each<uint16_t, double>([from_bits](uint16_t x) { return double{from_bits(x)}; });
  w.narrow = each<double, uint16_t>([to_bits](double x) { return to_bits(x); });
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
  const auto add_widened = [&](gr_dtype_t dtype, auto from_bits, auto to_bits) {
    host::add_widened(table, in_double(dtype, from_bits, to_bits));
  };
  add_widened(
      GR_BFLOAT16, [](uint16_t x) { return sdk::from_bfloat16(x); },
      [](double x) { return sdk::to_bfloat16(x); });
  add_widened(
      GR_FLOAT16, [](uint16_t x) { return sdk::from_float16(x); },
      [](double x) { return sdk::to_float16(x); });
}

}  // namespace gradrack::reference
