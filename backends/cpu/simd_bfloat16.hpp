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

inline U16 load(const uint16_t* p) {
  U16 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(uint16_t* p, U16 v) { __builtin_memcpy(p, &v, sizeof v); }
#if defined(__AVX512F__)
/// The first `n` lanes; the others are 0.
inline U16 load_part(const uint16_t* p, int64_t n) {
  return (U16)_mm256_maskz_loadu_epi16(first_lanes(n), p);
}
inline void store_part(uint16_t* p, U16 v, int64_t n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), (__m256i)v);
}
#else
inline U16 load_part(const uint16_t* p, int64_t n) {
  U16 v = {};
  __builtin_memcpy(&v, p, static_cast<uint64_t>(n) * sizeof(uint16_t));
  return v;
}
inline void store_part(uint16_t* p, U16 v, int64_t n) {
  __builtin_memcpy(p, &v, static_cast<uint64_t>(n) * sizeof(uint16_t));
}
#endif

inline F widen_lanes(U16 bits) { return as_float(__builtin_convertvector(bits, U) << 16); }

/// To nearest even; a NaN is made quiet and stays one.
inline U16 narrow_lanes(F v) {
  const U bits = as_bits(v);
  const U near = bits + 0x7fffu + ((bits >> 16) & 1u);
  const U rounded = v != v ? bits | 0x400000u : near;
  return __builtin_convertvector(rounded >> 16, U16);
}

/// Lanes of float32 or bfloat16: the first `n`, or all.
inline F read_lanes(const float* x, int64_t n) { return n >= kLanes ? load(x) : load_part(x, n); }
inline F read_lanes(const uint16_t* x, int64_t n) {
  return widen_lanes(n >= kLanes ? load(x) : load_part(x, n));
}
inline void write_lanes(F v, float* y, int64_t n) {
  n >= kLanes ? store(y, v) : store_part(y, v, n);
}
inline void write_lanes(F v, uint16_t* y, int64_t n) {
  n >= kLanes ? store(y, narrow_lanes(v)) : store_part(y, narrow_lanes(v), n);
}

/// Numbers of 16 bits, by kWiden of a vector, and back by kNarrow.
template <F (*kWiden)(U16)>
inline void widen_loop(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, kWiden(load(x + i)));
  if (i < n) store_part(y + i, kWiden(load_part(x + i, n - i)), n - i);
}
template <U16 (*kNarrow)(F)>
inline void narrow_loop(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, kNarrow(load(x + i)));
  if (i < n) store_part(y + i, kNarrow(load_part(x + i, n - i)), n - i);
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
