// SPDX-License-Identifier: Apache-2.0
// float32 tiles for AVX-512 (F, BW, DQ, VL). CMakeLists.txt gives this file its -m flags; where the
// target has no such set the table is left out.
#include "backends/cpu/tiles_float.hpp"

namespace gradrack::cpu {

#if defined(__AVX512F__)
const TileLoops* tiles_avx512() {
  static constexpr TileLoops table = make_float_tiles("avx512");
  return &table;
}
#else
const TileLoops* tiles_avx512() { return nullptr; }
#endif

}  // namespace gradrack::cpu
