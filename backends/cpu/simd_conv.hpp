// SPDX-License-Identifier: Apache-2.0
// The hot loops of Conv: tiles of outputs held in registers, and the moves around them.
//
// A convolution is a sum over taps (a place of the kernel in one channel): each tap reads the same
// run of pixels from another offset of a padded copy, so no matrix of columns is made. Forward and
// input gradient keep filters x pixels in registers, the weight gradient taps x filters.
// Internal linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

// Accumulators for 16 or 32 registers, with room for a row of operands.
constexpr int kTileVectors = 3;
constexpr int kTileFilters = kLanes == 16 ? 8 : 4;
constexpr int kTileTaps = kLanes == 16 ? 8 : 4;

// Products that one accumulator takes before it is added to the output: longer chains of float32
// lose digits.
constexpr int64_t kChain = 256;

template <int kFilters, int kVectors>
void tap_tile(const TapProduct& t, const float* x, const float* w, const float* bias, float* y,
              int64_t y_step) {
#pragma GCC unroll 8
  for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      store(y + f * y_step + v * kLanes, splat(bias == nullptr ? 0.0f : bias[f]));
    }
  }
  const int64_t most = t.taps >= kChain ? 1 : kChain / (t.taps < 1 ? 1 : t.taps);
  for (int64_t c = 0; c < t.channels;) {
    F sums[kFilters][kVectors] = {};
    for (const int64_t end = c + most < t.channels ? c + most : t.channels; c < end; ++c) {
      for (int64_t k = 0; k < t.taps; ++k, w += kFilters) {
        const float* from = x + t.offsets[k];
        F pixels[kVectors];
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) pixels[v] = load(from + v * kLanes);
#pragma GCC unroll 8
        for (int f = 0; f < kFilters; ++f) {
          const F weight = splat(w[f]);
#pragma GCC unroll 3
          for (int v = 0; v < kVectors; ++v) sums[f][v] += weight * pixels[v];
        }
      }
      x += t.plane;
    }
#pragma GCC unroll 8
    for (int f = 0; f < kFilters; ++f) {
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) {
        float* const sum = y + f * y_step + v * kLanes;
        store(sum, load(sum) + sums[f][v]);
      }
    }
  }
}

template <int kFilters>
void tap_tile_row(const TapProduct& t, int vectors, const float* x, const float* w,
                  const float* bias, float* y, int64_t y_step) {
  if (vectors == 1) return tap_tile<kFilters, 1>(t, x, w, bias, y, y_step);
  if (vectors == 2) return tap_tile<kFilters, 2>(t, x, w, bias, y, y_step);
  tap_tile<kFilters, 3>(t, x, w, bias, y, y_step);
}

void tap_product(const TapProduct& t, int filters, int vectors, const float* x, const float* w,
                 const float* bias, float* y, int64_t y_step) {
  if (filters == 1) return tap_tile_row<1>(t, vectors, x, w, bias, y, y_step);
  if (filters == 2) return tap_tile_row<2>(t, vectors, x, w, bias, y, y_step);
  if (filters == 4) return tap_tile_row<4>(t, vectors, x, w, bias, y, y_step);
  if constexpr (kTileFilters == 8) tap_tile_row<8>(t, vectors, x, w, bias, y, y_step);
}

template <int kVectors>
void pixel_tile(const PixelRun& r, const float* x, const int64_t* offsets, const float* gy,
                float* sums, int64_t sums_step) {
  F tile[kTileTaps][kVectors] = {};
  const float* from[kTileTaps];
  for (int t = 0; t < kTileTaps; ++t) from[t] = x + offsets[t];
  for (int64_t j = 0; j < r.rows; ++j) {
    for (int64_t i = 0; i < r.columns; ++i, gy += r.gy_step) {
      F g[kVectors];
#pragma GCC unroll 3
      for (int v = 0; v < kVectors; ++v) g[v] = load(gy + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTileTaps; ++t) {
        const F pixel = splat(from[t][i]);
#pragma GCC unroll 3
        for (int v = 0; v < kVectors; ++v) tile[t][v] += pixel * g[v];
      }
    }
    for (int t = 0; t < kTileTaps; ++t) from[t] += r.x_row;
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTileTaps; ++t) {
#pragma GCC unroll 3
    for (int v = 0; v < kVectors; ++v) {
      float* const sum = sums + t * sums_step + v * kLanes;
      store(sum, load(sum) + tile[t][v]);
    }
  }
}

void pixel_product(const PixelRun& r, int vectors, const float* x, const int64_t* offsets,
                   const float* gy, float* sums, int64_t sums_step) {
  if (vectors == 1) return pixel_tile<1>(r, x, offsets, gy, sums, sums_step);
  if (vectors == 2) return pixel_tile<2>(r, x, offsets, gy, sums, sums_step);
  pixel_tile<3>(r, x, offsets, gy, sums, sums_step);
}

struct Places {
  int32_t at[kLanes];
};

/// Where lane k of a shuffle of two vectors comes from: first(k).
template <class First>
constexpr Places places(First first) {
  Places p{};
  for (int k = 0; k < kLanes; ++k) p.at[k] = first(k);
  return p;
}
inline F shuffle(F a, F b, const Places& places) {
  I at;
  __builtin_memcpy(&at, places.at, sizeof at);
  return __builtin_shuffle(a, b, at);
}

/// y[i] = x[2 i].
void every_second_row(const float* x, float* y, int64_t n) {
  static constexpr Places even = places([](int k) { return 2 * k; });
  int64_t i = 0;
  // x may end with the last number that is taken.
  for (; i + kLanes < n; i += kLanes) {
    store(y + i, shuffle(load(x + 2 * i), load(x + 2 * i + kLanes), even));
  }
  for (; i < n; ++i) y[i] = x[2 * i];
}

/// y[2 i] = a[i], y[2 i + 1] = b[i].
void interleave_rows(const float* a, const float* b, float* y, int64_t n) {
  static constexpr Places low = places([](int k) { return k % 2 * kLanes + k / 2; });
  static constexpr Places high = places([](int k) { return k % 2 * kLanes + k / 2 + kLanes / 2; });
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F va = load(a + i), vb = load(b + i);
    store(y + 2 * i, shuffle(va, vb, low));
    store(y + 2 * i + kLanes, shuffle(va, vb, high));
  }
  for (; i < n; ++i) {
    y[2 * i] = a[i];
    y[2 * i + 1] = b[i];
  }
}

/// One round of turning a square of vectors: swaps what is `kApart` off the diagonal.
template <int kApart>
inline void swap_off_diagonal(F* rows) {
  static constexpr Places upper =
      places([](int k) { return (k & kApart) == 0 ? k : kLanes + k - kApart; });
  static constexpr Places lower =
      places([](int k) { return (k & kApart) == 0 ? k + kApart : kLanes + k; });
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) {
    if ((r & kApart) != 0) continue;
    const F a = rows[r], b = rows[r + kApart];
    rows[r] = shuffle(a, b, upper);
    rows[r + kApart] = shuffle(a, b, lower);
  }
}

/// A square of vectors turned: y[i][r] = x[r][i].
inline void turn_square(const float* x, int64_t x_step, float* y, int64_t y_step) {
  F rows[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) rows[r] = load(x + r * x_step);
  swap_off_diagonal<1>(rows);
  swap_off_diagonal<2>(rows);
  if constexpr (kLanes > 4) swap_off_diagonal<4>(rows);
  if constexpr (kLanes > 8) swap_off_diagonal<8>(rows);
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) store(y + r * y_step, rows[r]);
}

/// y[i][r] = x[r][i] for `rows` x `columns` of x.
void turn_rows(const float* x, int64_t x_step, int64_t rows, int64_t columns, float* y,
               int64_t y_step) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t i = 0; i < whole_columns; i += kLanes) {
    for (int64_t r = 0; r < whole_rows; r += kLanes) {
      turn_square(x + r * x_step + i, x_step, y + i * y_step + r, y_step);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r < whole_rows ? whole_columns : 0; i < columns; ++i) {
      y[i * y_step + r] = x[r * x_step + i];
    }
  }
}

constexpr ConvLoops make_conv_loops() {
  return {kLanes,        kTileFilters,     kTileTaps,       kTileVectors, tap_product,
          pixel_product, every_second_row, interleave_rows, turn_rows};
}

}  // namespace
}  // namespace gradrack::cpu
