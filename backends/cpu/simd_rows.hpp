// SPDX-License-Identifier: Apache-2.0
// Loops over one row of float32: sums, softmax, normalisation and their gradients, AdamW, dropout.
//
// Statistics and long sums are taken in double and in a fixed order, in two passes, so that a large
// mean does not cancel and large values do not overflow. Internal linkage: see simd_vector.hpp.
// Outputs may share memory with an input of the same shape.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_math.hpp"

namespace gradrack::cpu {
namespace {

double sum_row(const float* x, int64_t n) {
  return sum_wide(n, [x](auto load) { return load(x); });
}
double dot_row(const float* a, const float* b, int64_t n) {
  // Products in double too: a float product could overflow where the sum does not matter.
  D low = {}, high = {};
  int64_t i = 0;
  for (; i < n; i += kLanes) {
    const int64_t left = n - i;
    const F u = left >= kLanes ? load(a + i) : load_part(a + i, left);
    const F v = left >= kLanes ? load(b + i) : load_part(b + i, left);
    low += widen_low(u) * widen_low(v);
    high += widen_high(u) * widen_high(v);
  }
  return lane_sum(low + high);
}
double sum_squares_row(const float* x, int64_t n) { return dot_row(x, x, n); }

float max_row(const float* x, int64_t n) {
  const float lowest = -__builtin_inff();
  F best = splat(lowest);
  for (int64_t i = 0; i < n; i += kLanes) {
    const F v = n - i >= kLanes ? load(x + i) : load_part(x + i, n - i, lowest);
    best = (v > best) | (v != v) ? v : best;
    // A NaN once in `best` stays: nothing compares greater than it.
  }
  float out = best[0];
  for (int k = 1; k < kLanes; ++k) out = best[k] > out || best[k] != best[k] ? best[k] : out;
  return out;
}

void add_to_columns_row(const float* x, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}
void max_of_columns_row(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
}

/// y = exp(x - shift); gives the sum. The difference is taken in float: shift is a float by then.
/// Short blocks are summed in float, blocks in double.
double exp_row(const float* x, float shift, float* y, int64_t n) {
  constexpr int64_t kBlock = 16 * kLanes;
  D total = {};
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t end = n - from < kBlock ? n : from + kBlock;
    F block = {};
    int64_t i = from;
    for (; i + kLanes <= end; i += kLanes) {
      const F v = vexp(load(x + i) - shift);
      if (y != nullptr) store(y + i, v);
      block += v;
    }
    if (i < end) {
      const F v = vexp(load_part(x + i, end - i, -__builtin_inff()) - shift);
      if (y != nullptr) store_part(y + i, v, end - i);
      // Lanes behind the end hold exp(-inf) = 0, or NaN when the whole row is NaN anyway.
      block += v;
    }
    total += widen_low(block) + widen_high(block);
  }
  return lane_sum(total);
}

void softmax_row(const float* x, float* y, int64_t n) {
  const double sum = exp_row(x, max_row(x, n), y, n);
  const float scale = static_cast<float>(1.0 / sum);
  map1(y, y, n, [scale](F v) { return v * scale; });
}

double log_sum_exp_row(const float* x, int64_t n) {
  const float shift = max_row(x, n);
  return static_cast<double>(shift) + __builtin_log(exp_row(x, shift, nullptr, n));
}

void log_softmax_row(const float* x, float* y, int64_t n) {
  const float shift = max_row(x, n);
  const float log_sum = static_cast<float>(__builtin_log(exp_row(x, shift, nullptr, n)));
  map1(x, y, n, [shift, log_sum](F v) { return (v - shift) - log_sum; });
}

void softmax_grad_row(const float* gy, const float* y, float* gx, int64_t n) {
  const float along = static_cast<float>(dot_row(gy, y, n));
  map2(gy, 1, y, 1, gx, n, [along](F g, F v) { return v * (g - along); });
}

void log_softmax_grad_row(const float* gy, const float* y, float* gx, int64_t n) {
  const float sum = static_cast<float>(sum_row(gy, n));
  map2(gy, 1, y, 1, gx, n, [sum](F g, F v) { return g - vexp(v) * sum; });
}

void exp_shifted_row(const float* x, double shift, float scale, float* y, int64_t n) {
  const float s = static_cast<float>(shift);
  map1(x, y, n, [s, scale](F v) { return vexp(v - s) * scale; });
}

/// Sum of (x - mean)^2.
double squares_about_row(const float* x, double mean, int64_t n) {
  const D m = splat_wide(mean);
  D low = {}, high = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F v = load(x + i);
    const D a = widen_low(v) - m, b = widen_high(v) - m;
    low += a * a;
    high += b * b;
  }
  double sum = lane_sum(low + high);
  for (; i < n; ++i) sum += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  return sum;
}

RowStatistics statistics_row(const float* x, int64_t n, RowNorm norm) {
  const double count = static_cast<double>(n);
  const double mean = norm.center ? sum_row(x, n) / count : 0.0;
  return {mean, 1.0 / __builtin_sqrt(squares_about_row(x, mean, n) / count + norm.epsilon)};
}

/// (v - mean) * inverse in double, rounded once.
inline F normalized(F v, RowStatistics s) {
  return narrow((widen_low(v) - s.mean) * s.inverse, (widen_high(v) - s.mean) * s.inverse);
}

void norm_row(const float* x, RowStatistics s, const float* scale, const float* bias, float* y,
              int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const bool whole = left >= kLanes;
    F v = normalized(whole ? load(x + i) : load_part(x + i, left), s);
    if (scale != nullptr) v *= whole ? load(scale + i) : load_part(scale + i, left);
    if (bias != nullptr) v += whole ? load(bias + i) : load_part(bias + i, left);
    whole ? store(y + i, v) : store_part(y + i, v, left);
  }
}

/// inverse * (g - mean(g) - n * mean(g * n)) with g = gy * scale; RMS: no mean(g).
void norm_grad_row(const float* gy, const float* x, RowStatistics s, const float* scale,
                   bool center, float* gx, int64_t n) {
  D along = {}, sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const bool whole = left >= kLanes;
    const F g = (whole ? load(gy + i) : load_part(gy + i, left)) *
                (whole ? load(scale + i) : load_part(scale + i, left));
    const F v = normalized(whole ? load(x + i) : load_part(x + i, left), s);
    along += widen_low(g) * widen_low(v) + widen_high(g) * widen_high(v);
    sum += widen_low(g) + widen_high(g);
  }
  const double count = static_cast<double>(n);
  const double mean_along = lane_sum(along) / count;
  const double mean = center ? lane_sum(sum) / count : 0.0;
  const float a = static_cast<float>(mean_along), m = static_cast<float>(mean);
  const float r = static_cast<float>(s.inverse);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const bool whole = left >= kLanes;
    const F g = (whole ? load(gy + i) : load_part(gy + i, left)) *
                (whole ? load(scale + i) : load_part(scale + i, left));
    const F v = normalized(whole ? load(x + i) : load_part(x + i, left), s);
    const F out = r * ((g - m) - v * a);
    whole ? store(gx + i, out) : store_part(gx + i, out, left);
  }
}

void norm_scale_grad_row(const float* gy, const float* x, RowStatistics s, double* sums,
                         int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    sums[i] += static_cast<double>(gy[i]) * ((static_cast<double>(x[i]) - s.mean) * s.inverse);
  }
}

/// PyTorch's AdamW: p -= lr wd p; m, v; p -= lr/(1-b1^t) m / (sqrt(v)/sqrt(1-b2^t) + eps).
void adamw_row(const AdamStep& step, const float* p, const float* g, const float* m, const float* v,
               float* p_out, float* m_out, float* v_out, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const bool whole = left >= kLanes;
    const F gi = whole ? load(g + i) : load_part(g + i, left);
    const F mi =
        (whole ? load(m + i) : load_part(m + i, left)) * step.beta1 + gi * step.one_minus_beta1;
    const F vi = (whole ? load(v + i) : load_part(v + i, left)) * step.beta2 +
                 gi * gi * step.one_minus_beta2;
    const F pi = (whole ? load(p + i) : load_part(p + i, left)) * step.decay;
    const F out = pi - step.step_size * mi / (vsqrt(vi) * step.root_inverse + step.epsilon);
    if (whole) {
      store(m_out + i, mi);
      store(v_out + i, vi);
      store(p_out + i, out);
    } else {
      store_part(m_out + i, mi, left);
      store_part(v_out + i, vi, left);
      store_part(p_out + i, out, left);
    }
  }
}

constexpr int kGroups = 16;  // of four numbers, side by side

/// The ten rounds of gradrack/philox.h on kGroups counters at once.
void philox_rounds(uint32_t* __restrict c0, uint32_t* __restrict c1, uint32_t* __restrict c2,
                   uint32_t* __restrict c3, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kGroups; ++l) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[l], p1 = uint64_t{0xCD9E8D57u} * c2[l];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c1[l] = static_cast<uint32_t>(p1);
      c3[l] = static_cast<uint32_t>(p0);
      c0[l] = n0;
      c2[l] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// gradrack.Dropout on groups [first, last) of four elements; element 4 g + lane takes number
/// `lane` of Philox4x32-10 with counter (g, stream, step, microbatch).
void dropout_groups(const DropoutStep& step, const float* x, float* y, uint8_t* mask, int64_t first,
                    int64_t last, int64_t count) {
  uint32_t c0[kGroups], c1[kGroups], c2[kGroups], c3[kGroups], numbers[4 * kGroups];
  for (int64_t group = first; group < last; group += kGroups) {
    for (int l = 0; l < kGroups; ++l) {
      c0[l] = static_cast<uint32_t>(group + l);
      c1[l] = step.counter[0];
      c2[l] = step.counter[1];
      c3[l] = step.counter[2];
    }
    philox_rounds(c0, c1, c2, c3, step.key);
    for (int l = 0; l < kGroups; ++l) {
      numbers[4 * l] = c0[l];
      numbers[4 * l + 1] = c1[l];
      numbers[4 * l + 2] = c2[l];
      numbers[4 * l + 3] = c3[l];
    }
    const int64_t at = group * 4, groups = last - group < kGroups ? last - group : kGroups;
    const int64_t n = groups * 4 < count - at ? groups * 4 : count - at;
    for (int64_t i = 0; i < n; ++i) {
      y[at + i] = (numbers[i] >> 8) >= step.threshold ? x[at + i] * step.scale : 0.0f;
    }
    if (mask == nullptr) continue;
    for (int64_t i = 0; i < n; ++i) mask[at + i] = (numbers[i] >> 8) >= step.threshold;
  }
}

}  // namespace
}  // namespace gradrack::cpu
