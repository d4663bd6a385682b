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

struct IsaName {
  const char* name;
  Isa isa;
};
constexpr IsaName kIsaNames[] = {
    {"scalar", Isa::kScalar}, {"avx2", Isa::kAvx2}, {"avx512", Isa::kAvx512}, {"amx", Isa::kAmx}};

const IsaName* isa_named(const char* wanted) {
  for (const IsaName& each : kIsaNames) {
    if (std::strcmp(wanted, each.name) == 0) return &each;
  }
  return nullptr;
}

/// What the environment asks for; the most where it says nothing.
Isa highest_allowed() {
  const char* wanted = std::getenv("GRADRACK_CPU_ISA");
  const IsaName* const found = wanted != nullptr ? isa_named(wanted) : nullptr;
  return found != nullptr ? found->isa : Isa::kAmx;  // no name: isa_problem() stops the backend
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

std::string isa_problem() {
  const char* wanted = std::getenv("GRADRACK_CPU_ISA");
  if (wanted == nullptr || isa_named(wanted) != nullptr) return {};
  return std::string("'") + wanted + "' is none of scalar, avx2, avx512 and amx";
}

const Simd& simd() {
  static const Simd* const table = choose();
  return *table;
}

}  // namespace gradrack::cpu
