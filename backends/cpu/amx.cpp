// SPDX-License-Identifier: Apache-2.0
// AmxTiles: see amx.hpp. Written with assembler lines, so that this file needs no flags of its own.
#include "backends/cpu/amx.hpp"

#include <cstdint>

#include "backends/cpu/simd.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace gradrack::cpu {

#if defined(__x86_64__) && defined(__linux__)

namespace {

bool processor_has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTile = 1u << 24, kTileBfloat16 = 1u << 22;
  if ((d & kTile) == 0 || (d & kTileBfloat16) == 0) return false;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kAvx512Bfloat16 = 1u << 5;
  return (a & kAvx512Bfloat16) != 0;
}

/// Linux gives the 8 KiB of tile registers to processes that ask
/// (https://docs.kernel.org/arch/x86/xstate.html).
bool system_lends_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

/// What ldtilecfg reads: palette 1 has eight tiles.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kConfig;

}  // namespace

bool amx_usable() {
  static const bool usable = isa_allows(Isa::kAmx) && processor_has_tiles() && system_lends_tiles();
  return usable;
}

AmxTiles::AmxTiles() { __asm__ volatile("ldtilecfg %0" ::"m"(kConfig)); }
AmxTiles::~AmxTiles() { __asm__ volatile("tilerelease"); }

#else

bool amx_usable() { return false; }
AmxTiles::AmxTiles() = default;
AmxTiles::~AmxTiles() = default;

#endif

}  // namespace gradrack::cpu
