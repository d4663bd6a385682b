// SPDX-License-Identifier: Apache-2.0
// Loops between bfloat16 (16 bits) and float32. Internal linkage: see simd_vector.hpp.
//
// Integer arithmetic alone, so that every instruction set gives the same bits: those of
// gradrack/bfloat16.hpp.
#pragma once

#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

typedef uint16_t U16 __attribute__((vector_size(kLanes * 2)));

inline F widen_lanes(U16 bits) {
  const U wide = __builtin_convertvector(bits, U) << 16;
  F v;
  __builtin_memcpy(&v, &wide, sizeof v);
  return v;
}

/// To nearest even; a NaN is made quiet and stays one.
inline U16 narrow_lanes(F v) {
  U bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  const U near = bits + 0x7fffu + ((bits >> 16) & 1u);
  const U rounded = v != v ? bits | 0x400000u : near;
  return __builtin_convertvector(rounded >> 16, U16);
}

/// Numbers of 16 bits, by kWiden of a vector, and back by kNarrow.
template <F (*kWiden)(U16)>
inline void widen_loop(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    U16 bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    store(y + i, kWiden(bits));
  }
  U16 bits = {};
  __builtin_memcpy(&bits, x + i, static_cast<uint64_t>(n - i) * sizeof(uint16_t));
  store_part(y + i, kWiden(bits), n - i);
}
template <U16 (*kNarrow)(F)>
inline void narrow_loop(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const U16 bits = kNarrow(load(x + i));
    __builtin_memcpy(y + i, &bits, sizeof bits);
  }
  const U16 bits = kNarrow(load_part(x + i, n - i));
  __builtin_memcpy(y + i, &bits, static_cast<uint64_t>(n - i) * sizeof(uint16_t));
}

inline void from_bfloat16_loop(const uint16_t* x, float* y, int64_t n) {
  widen_loop<widen_lanes>(x, y, n);
}
inline void to_bfloat16_loop(const float* x, uint16_t* y, int64_t n) {
  narrow_loop<narrow_lanes>(x, y, n);
}

inline void round_bfloat16_loop(const float* x, float* y, int64_t n) {
  map1(x, y, n, [](F v) { return widen_lanes(narrow_lanes(v)); });
}

}  // namespace
}  // namespace gradrack::cpu
