// SPDX-License-Identifier: Apache-2.0
// Chooses the table of hot loops for the processor this runs on, once.
//
// GRADRACK_CPU_ISA=scalar|avx2|avx512|amx takes at most that set, to compare results.
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

/// What the environment asks for; the most where it says nothing, or nothing known.
Isa highest_allowed() {
  const char* wanted = std::getenv("GRADRACK_CPU_ISA");
  if (wanted == nullptr) return Isa::kAmx;
  if (std::strcmp(wanted, "scalar") == 0) return Isa::kScalar;
  if (std::strcmp(wanted, "avx2") == 0) return Isa::kAvx2;
  if (std::strcmp(wanted, "avx512") == 0) return Isa::kAvx512;
  return Isa::kAmx;
}

const Simd* choose() {
  if (simd_avx512() != nullptr && has_avx512() && isa_allows(Isa::kAvx512)) return simd_avx512();
  if (simd_avx2() != nullptr && has_avx2() && isa_allows(Isa::kAvx2)) return simd_avx2();
  return simd_base();
}

}  // namespace

bool isa_allows(Isa isa) {
  static const Isa highest = highest_allowed();
  return isa <= highest;
}

const Simd& simd() {
  static const Simd* const table = choose();
  return *table;
}

}  // namespace gradrack::cpu
