// SPDX-License-Identifier: Apache-2.0
// float32 tiles for the compiler's baseline. They run on any processor.
#include "backends/cpu/tiles_float.hpp"

namespace gradrack::cpu {

const TileLoops* tiles_base() {
  static constexpr TileLoops table = make_float_tiles("baseline");
  return &table;
}

}  // namespace gradrack::cpu
