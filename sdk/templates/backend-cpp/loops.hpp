// SPDX-License-Identifier: Apache-2.0
// The loops of the backend, and the table that names the operator of each.
//
// Operators keep ONNX's names and meaning; what ONNX lacks is "gradrack.NAME". Every matrix product
// of the host arrives as gradrack.FusedMatMul. Invariant: one order of additions for each element,
// so that equal launches give equal bits. It does not check shapes: `refusal` of the backend does.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

struct LoopSizes {
  int64_t count = 0;         // elements of the output
  int64_t step[2] = {0, 0};  // 1: input k moves with the output; 0: it is one number
  // Y [rows, columns] = alpha op(A) op(B), op(A) [rows, inner]
  int64_t rows = 0, inner = 0, columns = 0;
  bool trans_a = false, trans_b = false;
  double alpha = 1;
};

using Loop = void (*)(const LoopSizes&, const float* a, const float* b, float* out);

/// out = F(a, b) and out = F(a), element by element.
template <auto F>
void loop_binary(const LoopSizes& s, const float* a, const float* b, float* out) {
  for (int64_t i = 0; i < s.count; ++i) out[i] = F(a[i * s.step[0]], b[i * s.step[1]]);
}
template <auto F>
void loop_unary(const LoopSizes& s, const float* a, const float*, float* out) {
  for (int64_t i = 0; i < s.count; ++i) out[i] = F(a[i]);
}

inline void loop_matmul(const LoopSizes& s, const float* a, const float* b, float* out) {
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < s.inner; ++p) {
        sum += double{a[s.trans_a ? p * s.rows + i : i * s.inner + p]} *
               double{b[s.trans_b ? j * s.inner + p : p * s.columns + j]};
      }
      out[i * s.columns + j] = static_cast<float>(s.alpha * sum);
    }
  }
}

struct LoopRow {
  const char* op;
  uint32_t inputs;
  Loop run;
};

inline constexpr LoopRow kLoops[] = {
    {"Add", 2, loop_binary<[](float x, float y) { return x + y; }>},
    {"Sub", 2, loop_binary<[](float x, float y) { return x - y; }>},
    {"Mul", 2, loop_binary<[](float x, float y) { return x * y; }>},
    {"Div", 2, loop_binary<[](float x, float y) { return x / y; }>},
    {"Neg", 1, loop_unary<[](float x) { return -x; }>},
    {"Relu", 1, loop_unary<[](float x) { return x < 0 ? 0 : x; }>},  // a NaN stays
    {"Sqrt", 1, loop_unary<[](float x) { return std::sqrt(x); }>},
    {"Exp", 1, loop_unary<[](float x) { return std::exp(x); }>},
    {"gradrack.FusedMatMul", 2, loop_matmul},
};

/// The row of operator `op`, or nullptr.
inline const LoopRow* find_loop(std::string_view op) {
  for (const LoopRow& row : kLoops) {
    if (op == row.op) return &row;
  }
  return nullptr;
}
