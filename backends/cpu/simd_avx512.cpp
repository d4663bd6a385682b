// SPDX-License-Identifier: Apache-2.0
// The hot loops for AVX-512 (F, BW, DQ, VL). CMakeLists.txt gives this file its -m flags; where the
// target has no such set the table is left out.
#include "backends/cpu/simd_table.hpp"

namespace gradrack::cpu {

#if defined(__AVX512F__)
const Simd* simd_avx512() {
  static constexpr Simd table = make_table("avx512");
  return &table;
}
#else
const Simd* simd_avx512() { return nullptr; }
#endif

}  // namespace gradrack::cpu
