// SPDX-License-Identifier: Apache-2.0
// gemm: one float32 matrix product, by oneDNN, on the calling thread alone.
//
// Products are spread over the pool by cutting them into pieces, not by oneDNN's own threads: two
// thread pools on the same cores would wait for each other. Row-major throughout.
#pragma once

#include <cstdint>

#include "backends/cpu/pool.hpp"

namespace gradrack::cpu {

struct GemmShape {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1.0f, beta = 0.0f;
  int64_t lda = 0, ldb = 0, ldc = 0;  // elements between rows as they lie in memory
};

/// C[m, n] = alpha op(A) op(B) + beta C. Any size may be 0. False: oneDNN refused. [any]
bool gemm(const GemmShape& shape, const float* a, const float* b, float* c);

/// The same, cut over the pool by rows or columns of C.
bool gemm_parallel(Pool& pool, const GemmShape& shape, const float* a, const float* b, float* c);

}  // namespace gradrack::cpu
