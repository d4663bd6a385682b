// SPDX-License-Identifier: Apache-2.0
// gemm on oneDNN's dnnl_sgemm (https://oneapi-src.github.io/oneDNN/v2.6/group_dnnl_api_blas.html),
// which is row-major and picks its code for the processor it runs on.
#include "backends/cpu/gemm.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <atomic>
#include <cstring>

#include "backends/cpu/onednn.hpp"

namespace gradrack::cpu {
namespace {

void scale(const GemmShape& s, float* c) {
  for (int64_t i = 0; i < s.m; ++i, c += s.ldc) {
    for (int64_t j = 0; j < s.n; ++j) c[j] = s.beta == 0.0f ? 0.0f : s.beta * c[j];
  }
}

}  // namespace

bool gemm(const GemmShape& s, const float* a, const float* b, float* c) {
  if (s.m == 0 || s.n == 0) return true;
  if (s.k == 0) {
    scale(s, c);
    return true;
  }
  use_one_openmp_thread();
  return dnnl_sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', s.m, s.n, s.k, s.alpha, a, s.lda,
                    b, s.ldb, s.beta, c, s.ldc) == dnnl_success;
}

bool gemm_parallel(Pool& pool, const GemmShape& s, const float* a, const float* b, float* c) {
  // About 20 us of work a piece at least, and no slivers of rows that waste the kernels' width.
  constexpr int64_t kWorthwhile = 1 << 20;  // multiply-adds
  const int64_t work = s.m * s.n * std::max<int64_t>(s.k, 1);
  const bool by_rows = s.m >= s.n;
  const int64_t length = by_rows ? s.m : s.n;
  const int64_t pieces = std::min({work / kWorthwhile, length / 32, int64_t{2} * pool.threads()});
  if (pieces <= 1 || pool.threads() == 1) return gemm(s, a, b, c);
  // Cuts at multiples of 16, which suit the kernels' tiles.
  const int64_t each = (length / pieces + 15) / 16 * 16;
  std::atomic<bool> ok{true};
  pool.run_pieces((length + each - 1) / each, [&](int64_t k) {
    const int64_t begin = k * each, size = std::min(each, length - begin);
    GemmShape part = s;
    (by_rows ? part.m : part.n) = size;
    const float* pa = a + (by_rows ? begin * (s.trans_a ? 1 : s.lda) : 0);
    const float* pb = b + (by_rows ? 0 : begin * (s.trans_b ? s.ldb : 1));
    float* pc = c + (by_rows ? begin * s.ldc : begin);
    if (!gemm(part, pa, pb, pc)) ok.store(false, std::memory_order_relaxed);
  });
  return ok.load();
}

}  // namespace gradrack::cpu
