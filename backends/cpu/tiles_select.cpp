// SPDX-License-Identifier: Apache-2.0
// Chooses the tiles for the processor this runs on: those of the set of hot loops
// (simd_select.cpp), so that GRADRACK_CPU_ISA caps both.
#include <cstring>

#include "backends/cpu/simd.hpp"
#include "backends/cpu/tiles.hpp"

namespace gradrack::cpu {
namespace {

const TileLoops* choose_float() {
  const auto is = [](const TileLoops* tiles) {
    return tiles != nullptr && std::strcmp(tiles->name, simd().name) == 0;
  };
  if (is(tiles_avx512())) return tiles_avx512();
  return is(tiles_avx2()) ? tiles_avx2() : tiles_base();
}

const TileLoops* choose_narrow() {
  if (&simd() == simd_avx512()) {
    if (tiles_amx() != nullptr) return tiles_amx();
    if (tiles_bfloat16() != nullptr) return tiles_bfloat16();
  }
  return choose_float();
}

}  // namespace

const TileLoops& tile_loops(bool narrow) {
  static const TileLoops* const floats = choose_float();
  static const TileLoops* const narrows = choose_narrow();
  return narrow ? *narrows : *floats;
}

}  // namespace gradrack::cpu
