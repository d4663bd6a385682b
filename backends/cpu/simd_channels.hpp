// SPDX-License-Identifier: Apache-2.0
// Loops over one plane of a channel, for normalisation over a batch: statistics and gradients.
//
// Numbers are taken as float32 differences from the mean, rounded to float32 (the center); what the
// center lacks of the mean is put right in double. Sums run in float32 over short blocks and in
// double over blocks, in a fixed order. Outputs may share memory with an input. Internal linkage:
// see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

constexpr int64_t kBlockVectors = 32;  // of a sum in float32

struct Center {
  explicit Center(double mean)
      : value(static_cast<float>(mean)), rest(mean - static_cast<double>(value)) {}
  float value;
  double rest;
};

/// Sums over i of two functions: f(at, sums) adds to sums, where at(p, fill) is the vector at p +
/// i, in the tail with `fill` for what is not there.
template <class Function>
inline ChannelSums sum_blocks(int64_t n, Function f) {
  D total[2] = {};
  for (int64_t i = 0; i < n;) {
    const int64_t end = n - i < kBlockVectors * kLanes ? n : i + kBlockVectors * kLanes;
    F even[2] = {}, odd[2] = {};
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      f([i](const float* p, float) { return load(p + i); }, even);
      f([i](const float* p, float) { return load(p + i + kLanes); }, odd);
    }
    for (; i < end; i += kLanes) {
      const int64_t left = end - i < kLanes ? end - i : kLanes;
      f([i, left](const float* p, float fill) { return load_part(p + i, left, fill); }, even);
    }
    for (int k = 0; k < 2; ++k) {
      total[k] += widen_low(even[k]) + widen_low(odd[k]);
      total[k] += widen_high(even[k]) + widen_high(odd[k]);
    }
  }
  return {lane_sum(total[0]), lane_sum(total[1])};
}

ChannelMoments moments_plane(const float* x, double center, int64_t n) {
  const float c = static_cast<float>(center);
  const F centers = splat(c);
  const ChannelSums sums = sum_blocks(n, [x, c, centers](auto at, F* s) {
    const F d = at(x, c) - centers;
    s[0] += d;
    s[1] += d * d;
  });
  return {sums.gy, sums.along};
}

void scale_plane(const float* x, RowStatistics s, double factor, double offset, float* y,
                 int64_t n) {
  const Center center(s.mean);
  const double slope = s.inverse * factor;
  const F c = splat(center.value), a = splat(static_cast<float>(slope)),
          b = splat(static_cast<float>(offset - center.rest * slope));
  map1(x, y, n, [c, a, b](F v) { return (v - c) * a + b; });
}

ChannelSums grad_sums_plane(const float* gy, const float* x, RowStatistics s, int64_t n) {
  const Center center(s.mean);
  const float value = center.value;
  const F c = splat(value);
  const ChannelSums sums = sum_blocks(n, [gy, x, value, c](auto at, F* terms) {
    const F g = at(gy, 0.0f);
    terms[0] += g;
    terms[1] += g * (at(x, value) - c);
  });
  return {sums.gy, (sums.along - center.rest * sums.gy) * s.inverse};
}

void input_grad_plane(const float* gy, const float* x, RowStatistics s, ChannelSums mean,
                      double factor, float* gx, int64_t n) {
  const Center center(s.mean);
  const double slope = s.inverse * mean.along;
  const F c = splat(center.value), a = splat(static_cast<float>(factor)),
          b = splat(static_cast<float>(factor * slope)),
          rest = splat(static_cast<float>(factor * (mean.gy - center.rest * slope)));
  map2(gy, 1, x, 1, gx, n, [c, a, b, rest](F g, F v) { return a * g - b * (v - c) - rest; });
}

}  // namespace
}  // namespace gradrack::cpu
