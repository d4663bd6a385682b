// SPDX-License-Identifier: Apache-2.0
// Rows of attention's scores, and rotary embedding of one position. Internal linkage: see
// simd_vector.hpp.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_bfloat16.hpp"
#include "backends/cpu/simd_rows.hpp"

namespace gradrack::cpu {
namespace {

/// e^x for x <= 0, 2 ulp; 0 below -87, where results would leave the normal numbers.
inline F vexp_below_zero(F x) {
  constexpr float kShift = 12582912.0f + 127.0f;  // 1.5 * 2^23 and the exponent's bias
  const F shifted = x * 1.44269504f + kShift;
  const F n = shifted - kShift;
  const F r = ln2_remainder(x, n);
  const F p = (exp_polynomial(r) * r + 1.0f) * r + 1.0f;
  const F y = p * as_float(as_int(shifted) << 23);
  return x < -87.0f ? F{} : y;
}

/// The greatest of a row; a NaN may be passed over.
inline float greatest(const float* x, int64_t n) {
  const float lowest = -__builtin_inff();
  F best = splat(lowest), other = best;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const F a = load(x + i), b = load(x + i + kLanes);
    best = a > best ? a : best;
    other = b > other ? b : other;
  }
  for (; i < n; i += kLanes) {
    const F a = n - i >= kLanes ? load(x + i) : load_part(x + i, n - i, lowest);
    best = a > best ? a : best;
  }
  best = other > best ? other : best;
  float most = best[0];
  for (int k = 1; k < kLanes; ++k) most = best[k] > most ? best[k] : most;
  return most;
}

bool has_nan(const float* x, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= x[i] != x[i];
  return found;
}

/// x = exp(factor (x - max)); gives the sum. Sums to 0 where all are -infinity. The shift
/// is one rounded number for the row, so that its error leaves the weights with the sum.
float exp_weights_row(float* x, float factor, int64_t n) {
  float most = factor * greatest(x, n);
  if (most == -__builtin_inff()) {
    if (has_nan(x, n)) {
      most = __builtin_nanf("");
    } else {
      most = 0;  // each weight is exp(-infinity)
    }
  }
  const auto weight = [=](F v) { return vexp_below_zero(v * factor - most); };
  return static_cast<float>(summed_row(x, x, n, weight));
}

/// With p = e * inverse: e = p, g = p (g - sum(g p)).
void weights_grad_row(float* e, float* g, float inverse, int64_t n) {
  D low = {}, high = {};
  int64_t i = 0;
  for (; i < n; i += kLanes) {
    const int64_t left = n - i;
    const F a = left >= kLanes ? load(e + i) : load_part(e + i, left);
    const F b = left >= kLanes ? load(g + i) : load_part(g + i, left);
    const F product = a * b;
    low += widen_low(product);
    high += widen_high(product);
  }
  const float shift = static_cast<float>(lane_sum(low + high) * static_cast<double>(inverse));
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const F p = load(e + i) * inverse;
    store(e + i, p);
    store(g + i, p * (load(g + i) - shift));
  }
  if (i < n) {
    const F p = load_part(e + i, n - i) * inverse;
    store_part(e + i, p, n - i);
    store_part(g + i, p * (load_part(g + i, n - i) - shift), n - i);
  }
}

/// Pairs (a, b) become (a cos - b sin, a sin + b cos), `half` of each; y may be x.
template <class T>
void rotate_halves_row(const T* x, const float* cos, const float* sin, T* y, int64_t half) {
  for (int64_t k = 0; k < half; k += kLanes) {
    const int64_t left = half - k;
    const F a = read_lanes(x + k, left), b = read_lanes(x + half + k, left);
    const F c = read_lanes(cos + k, left), s = read_lanes(sin + k, left);
    write_lanes(a * c - b * s, y + k, left);
    write_lanes(a * s + b * c, y + half + k, left);
  }
}

/// The same where pairs are neighbours.
void rotate_pairs_row(const float* x, const float* cos, const float* sin, float* y, int64_t half) {
  for (int64_t k = 0; k < half; ++k) {
    const float a = x[2 * k], b = x[2 * k + 1];
    y[2 * k] = a * cos[k] - b * sin[k];
    y[2 * k + 1] = a * sin[k] + b * cos[k];
  }
}

}  // namespace
}  // namespace gradrack::cpu
