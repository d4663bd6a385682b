// SPDX-License-Identifier: Apache-2.0
// float32 to bfloat16 by chance: the rounding of gradrack.StochasticRound, one number at a time.
//
// For backends and tests. Invariant: the mean over all `random` is the number itself, but for the
// numbers past the largest bfloat16.
#pragma once

#include <bit>
#include <cstdint>

#include "gradrack/bfloat16.hpp"

namespace gradrack::sdk {

/// Up or down, up with the probability of the distance to the lower: `random` is uniform in
/// [0, 65536). A finite number stays finite. Source: the upper half of bits + random.
inline uint16_t to_bfloat16_stochastic(float number, uint32_t random) {
  const auto bits = std::bit_cast<uint32_t>(number);
  if ((bits & 0x7f800000u) == 0x7f800000u) return to_bfloat16(number);  // infinity, NaN
  const uint32_t moved = (bits + random) >> 16;
  const bool left = (moved & 0x7f80u) == 0x7f80u;  // past the largest number
  return static_cast<uint16_t>(left ? bits >> 16 : moved);
}

}  // namespace gradrack::sdk
