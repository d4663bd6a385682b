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
/// A load of lanes [i, i + kLanes) of an array of n, and of the last ones, padded with 0.
struct Whole {
  F operator()(const float* p) const { return load(p); }
};
struct Part {
  int64_t n;
  F operator()(const float* p) const { return load_part(p, n); }
};

/// body(i, loader) for each vector of n elements. Two calls, so that the loader of the tail, which
/// goes through memory, is not in the loop.
template <class Body>
inline void for_vectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}
inline void store_whole_or_part(float* p, F v, Whole) { store(p, v); }
inline void store_whole_or_part(float* p, F v, Part part) { store_part(p, v, part.n); }

double dot_row(const float* a, const float* b, int64_t n) {
  // Products in double too: a float product could overflow where the sum does not matter. Four
  // sums side by side, so that one addition need not wait for another.
  D even_low = {}, even_high = {}, odd_low = {}, odd_high = {};
  const int64_t pairs = n / (2 * kLanes) * (2 * kLanes);
  for (int64_t i = 0; i < pairs; i += 2 * kLanes) {
    const F u = load(a + i), v = load(b + i);
    even_low += widen_low(u) * widen_low(v);
    even_high += widen_high(u) * widen_high(v);
    const F next_u = load(a + i + kLanes), next_v = load(b + i + kLanes);
    odd_low += widen_low(next_u) * widen_low(next_v);
    odd_high += widen_high(next_u) * widen_high(next_v);
  }
  for_vectors(n - pairs, [&](int64_t i, auto loader) {
    const F u = loader(a + pairs + i), v = loader(b + pairs + i);
    even_low += widen_low(u) * widen_low(v);
    even_high += widen_high(u) * widen_high(v);
  });
  return lane_sum((even_low + even_high) + (odd_low + odd_high));
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

/// y = f(x), y may be null; gives the sum of f(x). Short blocks are summed in float, blocks in
/// double. f(-infinity) is 0, unless the whole row is NaN.
template <class Function>
double summed_row(const float* x, float* y, int64_t n, const Function& f) {
  constexpr int64_t kBlock = 16 * kLanes;
  D total = {};
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t end = n - from < kBlock ? n : from + kBlock;
    F block = {};
    int64_t i = from;
    for (; i + kLanes <= end; i += kLanes) {
      const F v = f(load(x + i));
      if (y != nullptr) store(y + i, v);
      block += v;
    }
    if (i < end) {
      const F v = f(load_part(x + i, end - i, -__builtin_inff()));
      if (y != nullptr) store_part(y + i, v, end - i);
      block += v;
    }
    total += widen_low(block) + widen_high(block);
  }
  return lane_sum(total);
}

/// y = exp(x - shift); gives the sum. The difference is taken in float: shift is a float by then.
double exp_row(const float* x, float shift, float* y, int64_t n) {
  return summed_row(x, y, n, [shift](F v) { return vexp(v - shift); });
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

/// (v - mean) * inverse. The mean in two parts: rounded to one float it would cost digits where it
/// is large beside the deviations.
struct Normalized {
  explicit Normalized(RowStatistics s)
      : mean(splat(static_cast<float>(s.mean))),
        rest(splat(static_cast<float>(s.mean - static_cast<double>(static_cast<float>(s.mean))))),
        inverse(splat(static_cast<float>(s.inverse))) {}
  F operator()(F v) const { return ((v - mean) - rest) * inverse; }
  F mean, rest, inverse;
};

void norm_row(const float* x, RowStatistics s, const float* scale, const float* bias, float* y,
              int64_t n) {
  const Normalized normalized(s);
  for_vectors(n, [&](int64_t i, auto loader) {
    F v = normalized(loader(x + i));
    if (scale != nullptr) v *= loader(scale + i);
    if (bias != nullptr) v += loader(bias + i);
    store_whole_or_part(y + i, v, loader);
  });
}

/// norm_grad_row in double: in a row of a few elements the terms may nearly cancel.
void short_norm_grad_row(const float* gy, const float* x, RowStatistics s, const float* scale,
                         bool center, float* gx, int64_t n) {
  double along = 0, sum = 0;
  const auto g = [&](int64_t i) {
    return static_cast<double>(gy[i]) * static_cast<double>(scale[i]);
  };
  const auto v = [&](int64_t i) { return (static_cast<double>(x[i]) - s.mean) * s.inverse; };
  for (int64_t i = 0; i < n; ++i) {
    along += g(i) * v(i);
    sum += center ? g(i) : 0.0;
  }
  const double a = along / static_cast<double>(n), m = sum / static_cast<double>(n);
  // gx may be gy: each element is read before it is written.
  for (int64_t i = 0; i < n; ++i) gx[i] = static_cast<float>(s.inverse * (g(i) - m - v(i) * a));
}

/// inverse * (g - mean(g) - n * mean(g * n)) with g = gy * scale; RMS: no mean(g).
void norm_grad_row(const float* gy, const float* x, RowStatistics s, const float* scale,
                   bool center, float* gx, int64_t n) {
  constexpr int64_t kShort = 8;
  if (n <= kShort) return short_norm_grad_row(gy, x, s, scale, center, gx, n);
  const Normalized normalized(s);
  D along = {}, sum = {};
  for_vectors(n, [&](int64_t i, auto loader) {
    const F g = rounded(loader(gy + i) * loader(scale + i));
    const F both = g * normalized(loader(x + i));
    along += widen_low(both) + widen_high(both);
    if (center) sum += widen_low(g) + widen_high(g);
  });
  const double count = static_cast<double>(n);
  const F a = splat(static_cast<float>(lane_sum(along) / count));
  const F m = splat(center ? static_cast<float>(lane_sum(sum) / count) : 0.0f);
  for_vectors(n, [&](int64_t i, auto loader) {
    const F g = rounded(loader(gy + i) * loader(scale + i));
    const F v = normalized(loader(x + i));
    store_whole_or_part(gx + i, normalized.inverse * ((g - m) - v * a), loader);
  });
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
  for_vectors(n, [&](int64_t i, auto loader) {
    const F gi = rounded(loader(g + i) * step.factor);
    const F mi = loader(m + i) * step.beta1 + gi * step.one_minus_beta1;
    const F vi = loader(v + i) * step.beta2 + gi * gi * step.one_minus_beta2;
    const F pi = loader(p + i) * step.decay;
    const F out = pi - step.step_size * mi / (vsqrt(vi) * step.root_inverse + step.epsilon);
    store_whole_or_part(m_out + i, mi, loader);
    store_whole_or_part(v_out + i, vi, loader);
    store_whole_or_part(p_out + i, out, loader);
  });
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
