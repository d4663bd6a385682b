// SPDX-License-Identifier: Apache-2.0
// float32 tiles for AVX2 and FMA. CMakeLists.txt gives this file its -m flags; where the target has
// no such set the table is left out.
#include "backends/cpu/tiles_float.hpp"

namespace gradrack::cpu {

#if defined(__AVX2__) && defined(__FMA__)
const TileLoops* tiles_avx2() {
  static constexpr TileLoops table = make_float_tiles("avx2");
  return &table;
}
#else
const TileLoops* tiles_avx2() { return nullptr; }
#endif

}  // namespace gradrack::cpu
