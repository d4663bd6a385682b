// SPDX-License-Identifier: Apache-2.0
// float32 tiles in the vectors of this file's instruction set: two vectors of columns by as many
// rows as the registers hold. Internal linkage: see simd_vector.hpp.
#pragma once

#include <utility>

#include "backends/cpu/tiles_vector.hpp"

namespace gradrack::cpu {
namespace {

// 32 registers hold 14 rows of two vectors, two of B and one of A; 16 hold 6.
constexpr int kTileRows = kLanes == 16 ? 14 : 6;
constexpr int kTileColumns = 2 * kLanes;
constexpr int kPackedRows = kLanes == 4 ? 8 : kLanes;

/// c[kRows, kVectors] (+)= A B. kPacked: A's rows lie side by side, k by k.
template <int kRows, int kVectors, bool kPacked>
void float_tile_of(const TileRows& a, const float* b, int64_t steps, float* c, int64_t row_c,
                   bool add) {
  F sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = add ? load(c + i * row_c + j * kLanes) : F{};
  }
  const char* at = a.data;
  const int64_t row = kPacked ? int64_t{sizeof(float)} : a.row;
  const int64_t step = kPacked ? int64_t{kPackedRows * sizeof(float)} : int64_t{sizeof(float)};
  for (int64_t p = 0; p < steps; ++p, at += step, b += kTileColumns) {
    F v[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) v[j] = load(b + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      float x;
      __builtin_memcpy(&x, at + i * row, sizeof x);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[i][j] += splat(x) * v[j];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) store(c + i * row_c + j * kLanes, sums[i][j]);
  }
}

using FloatTile = void (*)(const TileRows&, const float*, int64_t, float*, int64_t, bool);

template <int kVectors, bool kPacked, int... kRows>
constexpr FloatTile float_tile_for(int rows, std::integer_sequence<int, kRows...>) {
  constexpr FloatTile tiles[] = {float_tile_of<kRows + 1, kVectors, kPacked>...};
  return tiles[rows - 1];
}

void float_tile(const TileRows& a, const void* b, int64_t steps, int rows, int columns, float* c,
                int64_t row_c, bool add) {
  constexpr auto heights = std::make_integer_sequence<int, kTileRows>();
  const bool packed = a.step != int64_t{sizeof(float)};
  FloatTile tile;
  if (columns > kLanes) {
    tile =
        packed ? float_tile_for<2, true>(rows, heights) : float_tile_for<2, false>(rows, heights);
  } else {
    tile =
        packed ? float_tile_for<1, true>(rows, heights) : float_tile_for<1, false>(rows, heights);
  }
  tile(a, static_cast<const float*>(b), steps, c, row_c, add);
}

void pack_float_a(const Factor& from, int64_t rows, int64_t k, void* to) {
  pack_floats(from, true, rows, kPackedRows, k, static_cast<float*>(to));
}

void pack_float_b(const Factor& from, int64_t k, int64_t columns, void* to) {
  pack_floats(from, false, columns, kTileColumns, k, static_cast<float*>(to));
}

constexpr TileLoops make_float_tiles(const char* name) {
  return {name, false,  false,      kTileRows,    kTileColumns, 1,        kPackedRows,
          1,    kLanes, float_tile, pack_float_a, pack_float_b, put_sums, get_numbers};
}

}  // namespace
}  // namespace gradrack::cpu
