// SPDX-License-Identifier: Apache-2.0
// The hot loops for the compiler's baseline. They run on any processor.
#include "backends/cpu/simd_table.hpp"

namespace gradrack::cpu {

const Simd* simd_base() {
  static constexpr Simd table = make_table("baseline");
  return &table;
}

}  // namespace gradrack::cpu
