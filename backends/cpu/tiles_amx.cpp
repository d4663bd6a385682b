// SPDX-License-Identifier: Apache-2.0
// bfloat16 tiles on AMX: 32 x 32 sums in four tile registers, two for A, two for B. CMakeLists.txt
// gives this file its -m flags; where the target has no such set the table is left out.
//
// A register is 16 rows of 64 bytes: 16 x 16 sums, 16 rows of A over 32 numbers of k, or 16 pairs
// of k over 16 columns of B. amx.hpp opens them.
#include "backends/cpu/amx.hpp"
#include "backends/cpu/tiles.hpp"

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512F__)
#include <immintrin.h>

#include "backends/cpu/tiles_pairs.hpp"

namespace gradrack::cpu {
namespace {

constexpr int kTile = 2 * kGroup;  // rows and columns
constexpr int kRowBytes = 64;

// Registers 0-3: sums, row by row; 4, 5: A; 6, 7: B. Their numbers are part of the instructions.
template <int kRowGroups, int kColumnGroups>
void amx_tile_of(const TileRows& a, const char* b, int64_t steps, float* c, int64_t row_c,
                 bool add) {
  float* const below = c + kGroup * row_c;
  const auto row_c_bytes = static_cast<uint64_t>(row_c) * sizeof(float);
  if (add) {
    _tile_loadd(0, c, row_c_bytes);
    if constexpr (kColumnGroups == 2) _tile_loadd(1, c + kGroup, row_c_bytes);
    if constexpr (kRowGroups == 2) _tile_loadd(2, below, row_c_bytes);
    if constexpr (kRowGroups == 2 && kColumnGroups == 2) {
      _tile_loadd(3, below + kGroup, row_c_bytes);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  constexpr int64_t kBlockBytes = kBlockNumbers * sizeof(uint16_t);
  const char* at = a.data;
  for (int64_t p = 0; p < steps; ++p, at += a.step, b += 2 * kBlockBytes) {
    _tile_loadd(6, b, kRowBytes);
    _tile_loadd(4, at, a.row);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumnGroups == 2) {
      _tile_loadd(7, b + kBlockBytes, kRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRowGroups == 2) {
      _tile_loadd(5, at + a.group, a.row);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kColumnGroups == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, row_c_bytes);
  if constexpr (kColumnGroups == 2) _tile_stored(1, c + kGroup, row_c_bytes);
  if constexpr (kRowGroups == 2) _tile_stored(2, below, row_c_bytes);
  if constexpr (kRowGroups == 2 && kColumnGroups == 2) {
    _tile_stored(3, below + kGroup, row_c_bytes);
  }
}

void amx_tile(const TileRows& a, const void* b, int64_t steps, int rows, int columns, float* c,
              int64_t row_c, bool add) {
  const char* panel = static_cast<const char*>(b);
  if (rows > kGroup) {
    if (columns > kGroup) return amx_tile_of<2, 2>(a, panel, steps, c, row_c, add);
    return amx_tile_of<2, 1>(a, panel, steps, c, row_c, add);
  }
  if (columns > kGroup) return amx_tile_of<1, 2>(a, panel, steps, c, row_c, add);
  amx_tile_of<1, 1>(a, panel, steps, c, row_c, add);
}

void pack_pairs_a(const Factor& from, int64_t rows, int64_t k, void* to) {
  pack_blocks(from, true, rows, 2, k, to);
}

}  // namespace

const TileLoops* tiles_amx() {
  static constexpr TileLoops table = {"amx",        true,         true,     kTile,      kTile,
                                      kStep,        kTile,        kGroup,   kGroup,     amx_tile,
                                      pack_pairs_a, pack_pairs_b, put_sums, get_numbers};
  return amx_usable() ? &table : nullptr;
}

}  // namespace gradrack::cpu
#else
namespace gradrack::cpu {
const TileLoops* tiles_amx() { return nullptr; }
}  // namespace gradrack::cpu
#endif
