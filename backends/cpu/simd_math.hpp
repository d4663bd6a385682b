// SPDX-License-Identifier: Apache-2.0
// exp, tanh, erf, log and sigmoid on vectors.
//
// Polynomials are this project's own near-minimax fits (weighted least squares, reweighted to level
// the error) in float32. Errors against double, checked by cpu_math_test.cpp: exp 2 ulp, tanh 3
// ulp, erf 3 ulp, log 2 ulp, sigmoid 4 ulp. NaN stays NaN; infinities give the limits. Internal
// linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd_vector.hpp"

namespace gradrack::cpu {
namespace {

inline F vabs(F x) { return as_float(as_int(x) & 0x7fffffff); }
inline F with_sign(F magnitude, F sign) {
  return as_float((as_int(magnitude) & 0x7fffffff) |
                  (as_int(sign) & static_cast<int32_t>(1u << 31)));
}

/// x - n ln 2, ln 2 in two parts.
inline F ln2_remainder(F x, F n) { return (x - n * 0.693359375f) + n * 2.12194440e-4f; }

/// p of e^r = p r^2 + r + 1, |r| <= ln(2)/2.
inline F exp_polynomial(F r) {
  F p = splat(0.00019920757f);
  p = p * r + 0.00139481225f;
  p = p * r + 0.00833326019f;
  p = p * r + 0.0416662432f;
  p = p * r + 0.166666672f;
  return p * r + 0.5f;
}

/// e^x = 2^n e^r with |r| <= ln(2)/2; n comes from adding 1.5 * 2^23, which leaves it in the low
/// bits.
inline F vexp(F x) {
  x = x > 89.0f ? splat(89.0f) : x;      // infinity from 88.73 on
  x = x < -104.0f ? splat(-104.0f) : x;  // 0 below -103.97
  const F shifted = x * 1.44269504f + 12582912.0f;
  const F n = shifted - 12582912.0f;
  const F r = ln2_remainder(x, n);
  const F p = exp_polynomial(r) * r * r + r + 1.0f;
  // Two factors, so that results near and below the smallest normal number come out right.
  const I whole = as_int(shifted) - 0x4B400000;
  const I half = whole >> 1;
  const I rest = whole - half;
  return p * as_float((half + 127) << 23) * as_float((rest + 127) << 23);
}

inline F vsigmoid(F x) { return 1.0f / (1.0f + vexp(-x)); }

/// A polynomial near 0, 1 - 2/(e^2|x| + 1) elsewhere.
inline F vtanh(F x) {
  const F a = vabs(x);
  const F z = x * x;
  F p = splat(-0.00566077232f);
  p = p * z + 0.0206019916f;
  p = p * z - 0.053729225f;
  p = p * z + 0.133313283f;
  p = p * z - 0.333332777f;
  const F small = x + x * z * p;
  const F large = with_sign(1.0f - 2.0f / (vexp(a + a) + 1.0f), x);
  // NaN fails the comparison and takes the polynomial, which keeps it.
  return a > 0.625f ? large : small;
}

/// A polynomial near 0, 1 - e^q(|x|) elsewhere, with q a fit of log(erfc).
inline F verf(F x) {
  const F a = vabs(x);
  const F z = x * x;
  F p = splat(8.36230756e-05f);
  p = p * z - 0.00081414805f;
  p = p * z + 0.00520099001f;
  p = p * z - 0.0268594138f;
  p = p * z + 0.112836964f;
  p = p * z - 0.376126349f;
  p = p * z + 0.128379166f;
  const F small = x + x * p;
  const F t = a > 4.0f ? splat(4.0f) : a;  // erf is 1 in float32 from 3.92 on
  F q = splat(-2.0909667e-05f);
  q = q * t + 0.000432304107f;
  q = q * t - 0.00416053133f;
  q = q * t + 0.0250915065f;
  q = q * t - 0.108236633f;
  q = q * t - 0.633386612f;
  q = q * t - 1.12949514f;
  q = q * t + 0.000170552681f;
  const F large = with_sign(1.0f - vexp(q), x);
  return a > 0.92f ? large : small;
}

/// ln x = e ln 2 + ln m with m in [sqrt(1/2), sqrt(2)).
inline F vlog(F x) {
  const I tiny = x < 1.17549435e-38f;
  const F scaled = tiny ? x * 8388608.0f : x;  // denormals: by 2^23
  const I bits = as_int(scaled) - 0x3f3504f3;  // of sqrt(1/2)
  const I exponent = bits >> 23;
  const F m = as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const F e = __builtin_convertvector(exponent, F) - (tiny ? splat(23.0f) : splat(0.0f));
  F p = splat(0.069179967f);
  p = p * m - 0.11779689f;
  p = p * m + 0.118660413f;
  p = p * m - 0.123857953f;
  p = p * m + 0.142199174f;
  p = p * m - 0.166691974f;
  p = p * m + 0.20002152f;
  p = p * m - 0.249999866f;
  p = p * m + 0.333333105f;
  const F z = m * m;
  F y = m * z * p + e * -2.12194440e-4f - 0.5f * z;
  y = (y + m) + e * 0.693359375f;
  y = x == splat(__builtin_inff()) ? x : y;
  y = x == 0.0f ? splat(-__builtin_inff()) : y;
  return x >= 0.0f ? y : splat(__builtin_nanf(""));
}

/// Square root, lane by lane: compiles to the vector instruction.
inline F vsqrt(F x) {
  F y;
  for (int k = 0; k < kLanes; ++k) y[k] = __builtin_sqrtf(x[k]);
  return y;
}
inline F vfloor(F x) {
  F y;
  for (int k = 0; k < kLanes; ++k) y[k] = __builtin_floorf(x[k]);
  return y;
}

}  // namespace
}  // namespace gradrack::cpu
