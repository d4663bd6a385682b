// SPDX-License-Identifier: Apache-2.0
// float16 numbers by their 16 bits: IEEE binary16.
//
// For backends without the hardware's own conversions, and for tests. Invariant: to_float16 rounds
// once, to nearest even, from either width, into subnormals too; a NaN stays one (made quiet, sign
// and the upper payload kept); what rounds past 65504 becomes infinity.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gradrack::sdk {

/// Exact.
inline float from_float16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t bits = static_cast<uint32_t>(half & 0x7fffu) << 13;
  const uint32_t exponent = bits & 0x0f800000u;
  bits += 112u << 23;                               // from a bias of 15 to one of 127
  if (exponent == 0x0f800000u) bits += 112u << 23;  // infinity, NaN
  if (exponent == 0) {                              // zero, subnormal: 2^-14 apart from its ones
    bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits + (1u << 23)) -
                                   std::bit_cast<float>(113u << 23));
  }
  return std::bit_cast<float>(bits | sign);
}

/// Round to nearest even.
inline uint16_t to_float16(float number) {
  uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  bits &= 0x7fffffffu;
  uint32_t half;
  if (bits > 0x7f800000u) {
    half = 0x7e00u | ((bits >> 13) & 0x1ffu);
  } else if (bits >= 143u << 23) {  // 65536 and more
    half = 0x7c00u;
  } else if (bits < 113u << 23) {  // below 2^-14: added to 1/2, the sum's own rounding is ours
    half =
        std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    half = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(half | sign);
}

/// Round to nearest even, from the double itself.
inline uint16_t to_float16(double number) {
  const float near = static_cast<float>(number);
  // Rounded to odd instead, a float keeps on which side of every middle the double lies.
  const double rest = std::fabs(number) - std::fabs(static_cast<double>(near));
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (rest != 0.0 && !std::isnan(number) && (bits & 1u) == 0) rest > 0.0 ? ++bits : --bits;
  return to_float16(std::bit_cast<float>(bits));
}

}  // namespace gradrack::sdk
