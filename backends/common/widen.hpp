// SPDX-License-Identifier: Apache-2.0
// add_widened: a table's operators on a 16-bit dtype, by the kernels that it has for a wider one.
//
// Inputs are widened into the workspace, the kernel runs, its results are rounded to nearest even:
// once, since both 16-bit dtypes widen exactly. A family with a kernel of its own for 16 bits adds
// it before, and that one wins. Invariant: kernels see none of the narrow dtype.
#pragma once

#include <functional>
#include <type_traits>

#include "backends/common/kernel.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack::host {

/// How numbers go from the narrow dtype to the wider one and back: `count` elements.
struct Widening {
  gr_dtype_t narrow_dtype = GR_BFLOAT16;  ///< or GR_FLOAT16
  gr_dtype_t wide = GR_FLOAT32;
  std::function<void(const uint16_t* from, void* to, int64_t count)> widen;
  std::function<void(const void* from, uint16_t* to, int64_t count)> narrow;
  /// Set where float32 beside the narrow dtype must become `wide` too: kernels want one dtype.
  std::function<void(const float* from, void* to, int64_t count)> widen_float;
  std::function<void(const void* from, float* to, int64_t count)> narrow_float;
};

/// bfloat16 or float16 in W, float or double, rounded once.
template <class W>
Widening widening_in(gr_dtype_t narrow) {
  const auto make = [narrow](auto from_bits, auto to_bits) {
    Widening w;
    w.narrow_dtype = narrow;
    w.wide = std::is_same_v<W, double> ? GR_FLOAT64 : GR_FLOAT32;
    w.widen = [from_bits](const uint16_t* from, void* to, int64_t count) {
      auto* y = static_cast<W*>(to);
      for (int64_t k = 0; k < count; ++k) y[k] = W{from_bits(from[k])};
    };
    w.narrow = [to_bits](const void* from, uint16_t* to, int64_t count) {
      const auto* x = static_cast<const W*>(from);
      for (int64_t k = 0; k < count; ++k) to[k] = to_bits(x[k]);
    };
    return w;
  };
  if (narrow == GR_BFLOAT16) {
    return make([](uint16_t x) { return sdk::from_bfloat16(x); },
                [](W x) { return sdk::to_bfloat16(x); });
  }
  return make([](uint16_t x) { return sdk::from_float16(x); },
              [](W x) { return sdk::to_float16(x); });
}

/// Adds an entry to every operator that the table has so far, for nodes with the narrow dtype;
/// of two dtypes the second comes after the first.
void add_widened(KernelTable& table, const Widening& widening);

}  // namespace gradrack::host
