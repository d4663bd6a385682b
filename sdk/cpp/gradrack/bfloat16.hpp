// SPDX-License-Identifier: Apache-2.0
// bfloat16 numbers by their 16 bits: the upper half of an IEEE binary32.
//
// For backends without the hardware's own conversions, and for tests. Invariant: to_bfloat16 rounds
// once, to nearest even, from either width; a NaN stays one (made quiet, sign and the upper payload
// kept); what is past the largest number becomes infinity.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace gradrack::sdk {

/// Exact.
inline float from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float number;
  std::memcpy(&number, &wide, sizeof number);
  return number;
}

/// Round to nearest even.
inline uint16_t to_bfloat16(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>(bits >> 16);
}

/// Round to nearest even, from the double itself.
inline uint16_t to_bfloat16(double number) {
  float near = static_cast<float>(number);
  // `near` may have been rounded onto the middle between two bfloat16; the double knows the side.
  uint32_t bits;
  std::memcpy(&bits, &near, sizeof bits);
  const double rest = std::fabs(number) - std::fabs(static_cast<double>(near));
  if ((bits & 0xffffu) == 0x8000u && rest != 0.0) bits = rest > 0.0 ? bits + 1 : bits - 1;
  std::memcpy(&near, &bits, sizeof near);
  return to_bfloat16(near);
}

}  // namespace gradrack::sdk
