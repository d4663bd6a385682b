// SPDX-License-Identifier: Apache-2.0
// Initial values: see initial.hpp. Draws go through a small block so that no full copy in double
// exists.
#include "core/state/initial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "core/device/convert.hpp"
#include "gradrack/philox.h"

namespace gradrack {

namespace {

double uniform53(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::array<double, 2> draw_pair(const gr_init_t& init, uint64_t seed, uint64_t hash,
                                uint64_t pair) {
  const uint32_t counter[4] = {static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32),
                               static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
  uint32_t bits[4];
  gr_philox4x32(counter, seed, bits);
  const double u = uniform53(bits[0], bits[1]);
  const double v = uniform53(bits[2], bits[3]);
  if (init.kind == GR_INIT_UNIFORM) {
    return {init.a + (init.b - init.a) * u, init.a + (init.b - init.a) * v};
  }
  const double radius = init.b * std::sqrt(-2.0 * std::log1p(-u));
  const double angle = 2.0 * std::numbers::pi * v;
  return {init.a + radius * std::cos(angle), init.a + radius * std::sin(angle)};
}

}  // namespace

Status write_initial(const std::string& name, gr_dtype_t dtype, const gr_init_t& init,
                     uint64_t seed, int64_t count, void* out) {
  if (init.kind < GR_INIT_CONSTANT || init.kind > GR_INIT_UNIFORM) {
    return invalid_argument("'" + name + "': unknown initializer " + std::to_string(init.kind));
  }
  constexpr int64_t kBlock = 1024;  // even, so that pairs do not straddle
  std::array<double, kBlock> block;
  block.fill(init.a);
  const uint64_t hash = gr_hash_text(name.c_str());
  auto* to = static_cast<std::byte*>(out);
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t n = std::min(kBlock, count - at);
    if (init.kind != GR_INIT_CONSTANT) {
      for (int64_t k = 0; k < n; k += 2) {
        const auto pair = draw_pair(init, seed, hash, static_cast<uint64_t>((at + k) / 2));
        block[static_cast<size_t>(k)] = pair[0];
        block[static_cast<size_t>(k) + 1] = pair[1];
      }
    }
    GR_TRY(write_numbers(dtype, std::span<const double>(block.data(), static_cast<size_t>(n)),
                         to + at * gr_dtype_bytes(dtype))
               .with_context("'" + name + "'"));
  }
  return {};
}

}  // namespace gradrack
