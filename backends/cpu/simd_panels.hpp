// SPDX-License-Identifier: Apache-2.0
// Products of small matrices in register tiles, and the panels that they read. Internal linkage:
// see simd_vector.hpp.
//
// A tile of C, kTileRows rows of a panel's two vectors, stays in registers over all of k.
// Invariant: the sum of one element of C is taken over k in its order, whatever the sizes.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

// Registers for the tile, a panel's vectors and one element of A: 16 + 2 + 1 of 32, 8 + 2 + 1
// of 16.
constexpr int kTileRows = kLanes == 16 ? 8 : 4;
constexpr int kPanel = 2 * kLanes;

/// C[R, V vectors] (+)= A[R, k in [from, to)] B.
template <int R, int V>
inline void tile_product(const PanelProduct& s, const float* a, const float* b, float* c,
                         int64_t from, int64_t to) {
  F sums[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sums[r][v] = s.add ? load(c + r * s.c_row + v * kLanes) : F{};
  }
  const float* column = a + from * s.a_column;
  const float* row = b + from * kPanel;
  for (int64_t k = from; k < to; ++k, column += s.a_column, row += kPanel) {
    F factors[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) factors[v] = load(row + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F x = splat(column[r * s.a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] += x * factors[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) store(c + r * s.c_row + v * kLanes, sums[r][v]);
  }
}

/// R rows from `row` on against one panel, as far as the triangle goes.
template <int R>
inline void tile_of_panel(const PanelProduct& s, const float* a, const float* b, float* c,
                          int64_t row, int64_t column) {
  int64_t from = 0, to = s.k;
  if (s.triangle == Triangle::kColumns && column >= s.diagonal + row + R) return;
  if (s.triangle == Triangle::kDepthEnd && s.diagonal + row + R < to) to = s.diagonal + row + R;
  if (s.triangle == Triangle::kDepthBegin && row > s.diagonal) from = row - s.diagonal;
  a += row * s.a_row;
  b += column / kPanel * s.b_panel;
  c += row * s.c_row + column;
  if (s.n - column > kLanes) {
    tile_product<R, 2>(s, a, b, c, from, to);
  } else {
    tile_product<R, 1>(s, a, b, c, from, to);
  }
}

void panel_product(const PanelProduct& s, const float* a, const float* b, float* c) {
  for (int64_t column = 0; column < s.n; column += kPanel) {
    int64_t row = 0;
    for (; row + kTileRows <= s.m; row += kTileRows) {
      tile_of_panel<kTileRows>(s, a, b, c, row, column);
    }
    for (; row < s.m; ++row) tile_of_panel<1>(s, a, b, c, row, column);
  }
}

/// x [rows, n], as the B of a product over its rows.
void pack_rows(const float* x, int64_t x_row, int64_t rows, int64_t n, float* panels,
               int64_t b_panel) {
  for (int64_t at = 0; at < n; at += kPanel, panels += b_panel) {
    const int64_t first = n - at < kLanes ? n - at : kLanes;
    const int64_t second = n - at - first < kLanes ? n - at - first : kLanes;
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = x + r * x_row + at;
      store(panels + r * kPanel, first == kLanes ? load(from) : load_part(from, first));
      store(panels + r * kPanel + kLanes,
            second == kLanes ? load(from + kLanes) : load_part(from + kLanes, second));
    }
  }
}

/// Lane j of row i becomes lane i of row j: for each bit of the numbers, pairs of rows exchange the
/// lanes whose bit is not theirs.
inline void transpose_lanes(F rows[kLanes]) {
  I lane;
  for (int k = 0; k < kLanes; ++k) lane[k] = k;
#pragma GCC unroll 4
  for (int step = kLanes / 2; step > 0; step /= 2) {
    const I low = (lane & step) == 0 ? lane : lane - step + kLanes;
    const I high = (lane & step) == 0 ? lane + step : lane + kLanes;
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & step) != 0) continue;
      const F a = rows[i], b = rows[i + step];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + step] = __builtin_shuffle(a, b, high);
    }
  }
}

/// x [rows, n], as the B of a product over its n columns: its rows become columns of panels.
void pack_columns(const float* x, int64_t x_row, int64_t rows, int64_t n, float* panels,
                  int64_t b_panel) {
  for (int64_t r = 0; r < rows; r += kLanes) {
    const int64_t lanes = rows - r < kLanes ? rows - r : kLanes;
    float* to = panels + r / kPanel * b_panel + r % kPanel;
    for (int64_t at = 0; at < n; at += kLanes) {
      const int64_t size = n - at < kLanes ? n - at : kLanes;
      F block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        const float* from = x + (r + i) * x_row + at;
        block[i] = i >= lanes ? F{} : size == kLanes ? load(from) : load_part(from, size);
      }
      transpose_lanes(block);
      if (size == kLanes) {
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) store(to + (at + i) * kPanel, block[i]);
      } else {
        for (int i = 0; i < size; ++i) store(to + (at + i) * kPanel, block[i]);
      }
    }
  }
}

}  // namespace
}  // namespace gradrack::cpu
