// SPDX-License-Identifier: Apache-2.0
// Collects the families into one table, and says which library this is.
#include "backends/libtorch/kernels.hpp"

#include <torch/headeronly/version.h>

#include "backends/common/widen.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack::libtorch {
namespace {

/// Families that sum claim float32 and float64 alone: 16 bits go through float32 there.
template <class FromBits, class ToBits>
host::Widening in_float(gr_dtype_t narrow, FromBits from_bits, ToBits to_bits) {
  host::Widening w;
  w.narrow_dtype = narrow;
  w.wide = GR_FLOAT32;
  w.widen = [from_bits](const uint16_t* from, void* to, int64_t count) {
    auto* y = static_cast<float*>(to);
    for (int64_t k = 0; k < count; ++k) y[k] = from_bits(from[k]);
  };
  w.narrow = [to_bits](const void* from, uint16_t* to, int64_t count) {
    const auto* x = static_cast<const float*>(from);
    for (int64_t k = 0; k < count; ++k) to[k] = to_bits(x[k]);
  };
  return w;
}

}  // namespace

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
  host::add_widened(table, in_float(
                               GR_BFLOAT16, [](uint16_t x) { return sdk::from_bfloat16(x); },
                               [](float x) { return sdk::to_bfloat16(x); }));
  host::add_widened(table, in_float(
                               GR_FLOAT16, [](uint16_t x) { return sdk::from_float16(x); },
                               [](float x) { return sdk::to_float16(x); }));
}

std::string library_text() { return "LibTorch " TORCH_VERSION; }

}  // namespace gradrack::libtorch
