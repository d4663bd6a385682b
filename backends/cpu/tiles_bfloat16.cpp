// SPDX-License-Identifier: Apache-2.0
// bfloat16 tiles on AVX-512 BF16: two vectors of columns by up to 14 rows, a pair of numbers of k
// at a time. CMakeLists.txt gives this file its -m flags; where the target has no such set the
// table is left out.
#include "backends/cpu/tiles.hpp"

#if defined(__AVX512BF16__) && defined(__AVX512F__)
#include <immintrin.h>

#include <utility>

#include "backends/cpu/tiles_pairs.hpp"

namespace gradrack::cpu {
namespace {

constexpr int kTileRows = 14;  // 28 registers of sums, two of B, one of A

template <int kRows>
void pairs_tile_of(const TileRows& a, const uint16_t* b, int64_t steps, float* c, int64_t row_c,
                   bool add) {
  __m512 sums[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      sums[i][j] = add ? _mm512_loadu_ps(c + i * row_c + j * kGroup) : _mm512_setzero_ps();
    }
  }
  const char* at = a.data;
  for (int64_t p = 0; p < steps; ++p, at += a.step, b += 2 * kBlockNumbers) {
    for (int64_t pair = 0; pair < kStep / 2; ++pair) {
      const auto b0 = (__m512bh)_mm512_loadu_si512(b + pair * kStep);
      const auto b1 = (__m512bh)_mm512_loadu_si512(b + kBlockNumbers + pair * kStep);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        int32_t both;
        __builtin_memcpy(&both, at + i * a.row + pair * 4, sizeof both);
        const auto x = (__m512bh)_mm512_set1_epi32(both);
        sums[i][0] = _mm512_dpbf16_ps(sums[i][0], x, b0);
        sums[i][1] = _mm512_dpbf16_ps(sums[i][1], x, b1);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) _mm512_storeu_ps(c + i * row_c + j * kGroup, sums[i][j]);
  }
}

using PairsTile = void (*)(const TileRows&, const uint16_t*, int64_t, float*, int64_t, bool);

template <int... kRows>
constexpr PairsTile pairs_tile_for(int rows, std::integer_sequence<int, kRows...>) {
  constexpr PairsTile tiles[] = {pairs_tile_of<kRows + 1>...};
  return tiles[rows - 1];
}

void pairs_tile(const TileRows& a, const void* b, int64_t steps, int rows, int, float* c,
                int64_t row_c, bool add) {
  pairs_tile_for(rows, std::make_integer_sequence<int, kTileRows>())(
      a, static_cast<const uint16_t*>(b), steps, c, row_c, add);
}

void pack_pairs_a(const Factor& from, int64_t rows, int64_t k, void* to) {
  pack_blocks(from, true, rows, 1, k, to);
}

}  // namespace

const TileLoops* tiles_bfloat16() {
  static constexpr TileLoops table = {"avx512 bf16", true,         false,    kTileRows,  2 * kGroup,
                                      kStep,         kGroup,       1,        2 * kGroup, pairs_tile,
                                      pack_pairs_a,  pack_pairs_b, put_sums, get_numbers};
  return __builtin_cpu_supports("avx512bf16") ? &table : nullptr;
}

}  // namespace gradrack::cpu
#else
namespace gradrack::cpu {
const TileLoops* tiles_bfloat16() { return nullptr; }
}  // namespace gradrack::cpu
#endif
