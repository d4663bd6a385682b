// SPDX-License-Identifier: Apache-2.0
// Loops over one plane of a channel, for normalisation over a batch: statistics and gradients.
//
// All in double, rounded once, sums in a fixed order. Outputs may share memory with an input.
// Internal linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

void scale_plane(const float* x, RowStatistics s, double factor, double offset, float* y,
                 int64_t n) {
  map1(x, y, n, [&](F v) {
    return narrow((widen_low(v) - s.mean) * s.inverse * factor + offset,
                  (widen_high(v) - s.mean) * s.inverse * factor + offset);
  });
}

ChannelSums grad_sums_plane(const float* gy, const float* x, RowStatistics s, int64_t n) {
  D sum_low = {}, sum_high = {}, along_low = {}, along_high = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t left = n - i;
    const bool whole = left >= kLanes;
    const F g = whole ? load(gy + i) : load_part(gy + i, left);
    const F v = whole ? load(x + i) : load_part(x + i, left);
    const D low = widen_low(g), high = widen_high(g);
    sum_low += low;
    sum_high += high;
    along_low += low * ((widen_low(v) - s.mean) * s.inverse);
    along_high += high * ((widen_high(v) - s.mean) * s.inverse);
  }
  return {lane_sum(sum_low + sum_high), lane_sum(along_low + along_high)};
}

void input_grad_plane(const float* gy, const float* x, RowStatistics s, ChannelSums mean,
                      double factor, float* gx, int64_t n) {
  map2(gy, 1, x, 1, gx, n, [&](F g, F v) {
    const D low = (widen_low(v) - s.mean) * s.inverse, high = (widen_high(v) - s.mean) * s.inverse;
    return narrow(factor * (widen_low(g) - mean.gy - low * mean.along),
                  factor * (widen_high(g) - mean.gy - high * mean.along));
  });
}

}  // namespace
}  // namespace gradrack::cpu
