// SPDX-License-Identifier: Apache-2.0
// Chooses the table of hot loops for the processor this runs on, once.
//
// GRADRACK_CPU_SIMD=baseline|avx2|avx512 takes a lower set than the processor has, to compare
// results.
#include <cstdlib>
#include <cstring>

#include "backends/cpu/simd.hpp"

namespace gradrack::cpu {
namespace {

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

const Simd* choose() {
  const char* wanted = std::getenv("GRADRACK_CPU_SIMD");
  const auto at_most = [wanted](const char* name) {
    return wanted == nullptr || std::strcmp(wanted, name) == 0;
  };
  if (simd_avx512() != nullptr && has_avx512() && at_most("avx512")) return simd_avx512();
  if (simd_avx2() != nullptr && has_avx2() && (at_most("avx2") || at_most("avx512"))) {
    return simd_avx2();
  }
  return simd_base();
}

}  // namespace

const Simd& simd() {
  static const Simd* const table = choose();
  return *table;
}

}  // namespace gradrack::cpu
