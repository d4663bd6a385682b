// SPDX-License-Identifier: Apache-2.0
// Elementwise loops on float32: unary, binary, comparisons, selection. Internal linkage: see
// simd_vector.hpp. Formulas are those of the operators in core/graph/ops.
#pragma once

#include "backends/cpu/simd.hpp"
#include "backends/cpu/simd_math.hpp"

namespace gradrack::cpu {
namespace {

constexpr float kRootHalf = 0.707106781f;
constexpr float kRootTwoOverPi = 0.797884561f;
constexpr float kGeluCubic = 0.044715f;

struct NegOp {
  static F at(F x, float) { return -x; }
};
struct AbsOp {
  static F at(F x, float) { return vabs(x); }
};
struct SqrtOp {
  static F at(F x, float) { return vsqrt(x); }
};
struct ExpOp {
  static F at(F x, float) { return vexp(x); }
};
struct LogOp {
  static F at(F x, float) { return vlog(x); }
};
struct ErfOp {
  static F at(F x, float) { return verf(x); }
};
struct TanhOp {
  static F at(F x, float) { return vtanh(x); }
};
struct SigmoidOp {
  static F at(F x, float) { return vsigmoid(x); }
};
struct ReluOp {
  static F at(F x, float) { return x < 0.0f ? splat(0.0f) : x; }
};  // keeps NaN
struct SignOp {
  static F at(F x, float) { return x > 0.0f ? splat(1.0f) : (x < 0.0f ? splat(-1.0f) : x); }
};
struct FloorOp {
  static F at(F x, float) { return vfloor(x); }
};
struct ReciprocalOp {
  static F at(F x, float) { return 1.0f / x; }
};
struct SwishOp {
  static F at(F x, float alpha) { return x * vsigmoid(x * alpha); }
};
struct LeakyReluOp {
  static F at(F x, float alpha) { return x > 0.0f ? x : x * alpha; }
};
struct SoftplusOp {
  static F at(F x, float) { return ReluOp::at(x, 0) + vlog(1.0f + vexp(-vabs(x))); }
};
struct GeluOp {
  static F at(F x, float) { return 0.5f * x * (1.0f + verf(x * kRootHalf)); }
};
struct GeluTanhOp {
  static F at(F x, float) {
    return 0.5f * x * (1.0f + vtanh(kRootTwoOverPi * (x + kGeluCubic * x * x * x)));
  }
};

struct AddOp {
  static F at(F a, F b, float) { return a + b; }
};
struct SubOp {
  static F at(F a, F b, float) { return a - b; }
};
struct MulOp {
  static F at(F a, F b, float) { return a * b; }
};
struct DivOp {
  static F at(F a, F b, float) { return a / b; }
};
struct MaxOp {  // NaN if one is
  static F at(F a, F b, float) { return (a > b) | (a != a) ? a : b; }
};
struct MinOp {
  static F at(F a, F b, float) { return (a < b) | (a != a) ? a : b; }
};
struct GeluGradOp {
  static F at(F gy, F x, float) {
    const F cdf = 0.5f * (1.0f + verf(x * kRootHalf));
    return gy * (cdf + x * (0.398942280f * vexp(-0.5f * x * x)));
  }
};
struct GeluTanhGradOp {
  static F at(F gy, F x, float) {
    const F square = x * x;
    const F t = vtanh(kRootTwoOverPi * (x + kGeluCubic * x * square));
    const F inner = kRootTwoOverPi * (1.0f + 3.0f * kGeluCubic * square);
    // Where tanh has become 1, 0 times a huge inner would still be right; inf times 0 would not.
    const F bend = 1.0f - t * t;
    const F side = bend == 0.0f ? splat(0.0f) : 0.5f * x * bend * inner;
    return gy * (0.5f * (1.0f + t) + side);
  }
};
struct SwishGradOp {
  static F at(F gy, F x, float alpha) {
    const F s = vsigmoid(x * alpha);
    return gy * (s * (1.0f + alpha * x * (1.0f - s)));
  }
};

template <class Op>
void unary_loop(const float* x, float* y, int64_t n, float alpha) {
  map1(x, y, n, [alpha](F v) { return Op::at(v, alpha); });
}
template <class Op>
void binary_loop(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y,
                 int64_t n, float alpha) {
  map2(a, a_step, b, b_step, y, n, [alpha](F u, F v) { return Op::at(u, v, alpha); });
}

struct EqualOp {
  static bool at(float a, float b) { return a == b; }
};
struct LessOp {
  static bool at(float a, float b) { return a < b; }
};
struct LessOrEqualOp {
  static bool at(float a, float b) { return a <= b; }
};
struct GreaterOp {
  static bool at(float a, float b) { return a > b; }
};
struct GreaterOrEqualOp {
  static bool at(float a, float b) { return a >= b; }
};

template <class Op>
void compare_loop(const float* a, int64_t a_step, const float* b, int64_t b_step, uint8_t* y,
                  int64_t n) {
  if (a_step != 0 && b_step != 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = Op::at(a[i], b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = Op::at(a[i * a_step], b[i * b_step]);
  }
}

void select_loop(const uint8_t* c, int64_t c_step, const float* a, int64_t a_step, const float* b,
                 int64_t b_step, float* y, int64_t n) {
  if (c_step == 0) {
    const float* from = *c != 0 ? a : b;
    const int64_t step = *c != 0 ? a_step : b_step;
    for (int64_t i = 0; i < n; ++i) y[i] = from[i * step];
    return;
  }
  // The common case of a mask: one side is a single number.
  if (a_step != 0 && b_step == 0) {
    const float other = *b;
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? a[i] : other;
  } else if (a_step == 0 && b_step != 0) {
    const float one = *a;
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? one : b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? a[i * a_step] : b[i * b_step];
  }
}

void add_scaled_loop(const float* x, float alpha, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

}  // namespace
}  // namespace gradrack::cpu
