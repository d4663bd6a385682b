// SPDX-License-Identifier: Apache-2.0
// The hot loops for AVX2 and FMA. CMakeLists.txt gives this file its -m flags; where the target has
// no such set the table is left out.
#include "backends/cpu/simd_table.hpp"

namespace gradrack::cpu {

#if defined(__AVX2__) && defined(__FMA__)
const Simd* simd_avx2() {
  static constexpr Simd table = make_table("avx2");
  return &table;
}
#else
const Simd* simd_avx2() { return nullptr; }
#endif

}  // namespace gradrack::cpu
