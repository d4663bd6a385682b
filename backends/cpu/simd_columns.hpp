// SPDX-License-Identifier: Apache-2.0
// Loops of a softmax whose classes are rows: one row at a time, a column each for every example.
// Internal linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd_math.hpp"

namespace gradrack::cpu {
namespace {

/// total += exp(x - largest).
void add_exp_of_columns_row(const float* x, const float* largest, float* total, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(total + i, load(total + i) + vexp(load(x + i) - load(largest + i)));
  }
  if (i == n) return;
  const int64_t left = n - i;
  const F v = vexp(load_part(x + i, left) - load_part(largest + i, left));
  store_part(total + i, load_part(total + i, left) + v, left);
}

/// scale exp(x - shift), and 0 where the scale is 0, whatever x is.
inline F scaled_exp(F x, F shift, F scale) {
  const F v = vexp(x - shift) * scale;
  return scale != splat(0.0f) ? v : splat(0.0f);
}

void softmax_of_columns_row(const float* x, const float* shift, const float* scale, float* y,
                            int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(y + i, scaled_exp(load(x + i), load(shift + i), load(scale + i)));
  }
  if (i == n) return;
  const int64_t left = n - i;
  store_part(
      y + i,
      scaled_exp(load_part(x + i, left), load_part(shift + i, left), load_part(scale + i, left)),
      left);
}

}  // namespace
}  // namespace gradrack::cpu
