// SPDX-License-Identifier: Apache-2.0
// F, I, D: vectors as wide as the instruction set this file is compiled for, and loops over them.
//
// Included by the three simd_<set>.cpp alone, each compiled with its own -m flags. Invariant:
// everything here has internal linkage and uses no library inline function, so the linker can never
// put code for one instruction set where another was asked for. Elements of a tail run through the
// same arithmetic as all others: a value does not depend on where a loop was cut.
#pragma once

#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace gradrack::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float F __attribute__((vector_size(kLanes * 4)));
typedef int32_t I __attribute__((vector_size(kLanes * 4)));
typedef uint32_t U __attribute__((vector_size(kLanes * 4)));
typedef float Half __attribute__((vector_size(kLanes * 2)));
typedef double D __attribute__((vector_size(kLanes * 4)));  // kLanes / 2 of them
constexpr int kWide = kLanes / 2;

inline F load(const float* p) {
  F v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, F v) { __builtin_memcpy(p, &v, sizeof v); }
#if defined(__AVX512F__)
inline __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
/// The first `n` lanes; the others are `fill`.
inline F load_part(const float* p, int64_t n, float fill = 0.0f) {
  return (F)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(n), p);
}
inline void store_part(float* p, F v, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), (__m512)v);
}
#else
inline F load_part(const float* p, int64_t n, float fill = 0.0f) {
  F v = fill - F{};
  __builtin_memcpy(&v, p, static_cast<uint64_t>(n) * sizeof(float));
  return v;
}
inline void store_part(float* p, F v, int64_t n) {
  __builtin_memcpy(p, &v, static_cast<uint64_t>(n) * sizeof(float));
}
#endif
inline F splat(float x) { return x - F{}; }
inline D splat_wide(double x) { return x - D{}; }
/// v as a float of its own: not one half of a fused multiply and add, which would round once less
/// than elsewhere.
inline F rounded(F v) {
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(v);
#else
  return v;
#endif
}
template <class To, class From>
inline To same_bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &v, sizeof to);
  return to;
}
inline I as_int(F v) { return same_bits<I>(v); }
inline U as_bits(F v) { return same_bits<U>(v); }
inline F as_float(I i) { return same_bits<F>(i); }
inline F as_float(U bits) { return same_bits<F>(bits); }
inline D widen_low(F v) {
  Half h;
  __builtin_memcpy(&h, &v, sizeof h);
  return __builtin_convertvector(h, D);
}
inline D widen_high(F v) {
  Half h;
  __builtin_memcpy(&h, reinterpret_cast<const char*>(&v) + sizeof h, sizeof h);
  return __builtin_convertvector(h, D);
}
inline F narrow(D low, D high) {
  const Half a = __builtin_convertvector(low, Half), b = __builtin_convertvector(high, Half);
  F v;
  __builtin_memcpy(&v, &a, sizeof a);
  __builtin_memcpy(reinterpret_cast<char*>(&v) + sizeof a, &b, sizeof b);
  return v;
}
inline double lane_sum(D v) {
  double sum = v[0];
  for (int k = 1; k < kWide; ++k) sum += v[k];
  return sum;
}

/// y[i] = f(x[i]).
template <class Function>
inline void map1(const float* x, float* y, int64_t n, Function f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i < n) store_part(y + i, f(load_part(x + i, n - i)), n - i);
}

/// y[i] = f(a[i], b[i]); a step of 0 repeats one number.
template <class Function>
inline void map2(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y,
                 int64_t n, Function f) {
  int64_t i = 0;
  if (a_step != 0 && b_step != 0) {
    for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(a + i), load(b + i)));
    if (i < n) {
      store_part(y + i, f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
    }
  } else if (a_step != 0) {
    const F vb = splat(*b);
    for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(a + i), vb));
    if (i < n) store_part(y + i, f(load_part(a + i, n - i), vb), n - i);
  } else if (b_step != 0) {
    const F va = splat(*a);
    for (; i + kLanes <= n; i += kLanes) store(y + i, f(va, load(b + i)));
    if (i < n) store_part(y + i, f(va, load_part(b + i, n - i)), n - i);
  } else {
    const F v = f(splat(*a), splat(*b));
    for (; i < n; ++i) y[i] = v[0];
  }
}

/// Sum over i of f(i-th vectors), in double and in a fixed order. `f(load)` gets a loader: load(p)
/// is the vector at p + i, padded with 0 in the tail, where f must give 0 for zeros.
template <class Function>
inline double sum_wide(int64_t n, Function f) {
  D low = {}, high = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F v = f([i](const float* p) { return load(p + i); });
    low += widen_low(v);
    high += widen_high(v);
  }
  if (i < n) {
    const F v = f([i, n](const float* p) { return load_part(p + i, n - i); });
    low += widen_low(v);
    high += widen_high(v);
  }
  return lane_sum(low + high);
}

}  // namespace
}  // namespace gradrack::cpu
