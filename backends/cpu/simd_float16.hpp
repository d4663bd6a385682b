// SPDX-License-Identifier: Apache-2.0
// Loops between float16 (16 bits) and float32. Internal linkage: see simd_vector.hpp.
//
// Integer arithmetic, and two float additions that are exact or round as IEEE does, so that every
// instruction set gives the same bits: those of gradrack/float16.hpp, where the steps are
// explained.
#pragma once

#include "backends/cpu/simd_bfloat16.hpp"

namespace gradrack::cpu {
namespace {

inline F widen_half_lanes(U16 half) {
  const U wide = __builtin_convertvector(half, U);
  const U magnitude = (wide & 0x7fffu) << 13;
  const U exponent = magnitude & 0x0f800000u;
  const U moved = magnitude + (112u << 23);
  const U subnormal = as_bits(as_float(moved + (1u << 23)) - as_float((113u << 23) + U{}));
  const U finite = exponent == 0 ? subnormal : moved;
  const U bits = exponent == 0x0f800000u ? moved + (112u << 23) : finite;
  return as_float(bits | (wide & 0x8000u) << 16);
}

inline U16 narrow_half_lanes(F v) {
  const U all = as_bits(v);
  const U bits = all & 0x7fffffffu;
  const U normal = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  const U subnormal = as_bits(as_float(bits) + 0.5f) - 0x3f000000u;  // the bits of 0.5
  const U finite = bits < (113u << 23) ? subnormal : normal;
  const U number = bits >= (143u << 23) ? 0x7c00u + U{} : finite;
  const U quiet = 0x7e00u | ((bits >> 13) & 0x1ffu);
  const U rounded = bits > 0x7f800000u ? quiet : number;
  return __builtin_convertvector(rounded | (all >> 16 & 0x8000u), U16);
}

inline void from_float16_loop(const uint16_t* x, float* y, int64_t n) {
  widen_loop<widen_half_lanes>(x, y, n);
}
inline void to_float16_loop(const float* x, uint16_t* y, int64_t n) {
  narrow_loop<narrow_half_lanes>(x, y, n);
}

}  // namespace
}  // namespace gradrack::cpu
