// SPDX-License-Identifier: Apache-2.0
// LoopPlan: an elementwise loop over broadcast operands, made when a kernel is prepared.
//
// Dims are merged until an inner loop of steps 0 or 1 and as few outer dims as possible are left:
// equal shapes become one loop, a bias one loop a row. Invariant: the output is dense and walked in
// order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/pool.hpp"

namespace gradrack::cpu {

class LoopPlan {
 public:
  static constexpr size_t kMaxOperands = 3;
  using Offsets = std::array<int64_t, kMaxOperands>;

  /// `operands`: shapes that broadcast to `out`; at most kMaxOperands.
  LoopPlan(const host::Dims& out, const std::vector<host::Dims>& operands);

  /// 1 or 0: how operand k moves along the inner loop.
  int64_t step(size_t k) const { return steps_[k]; }
  int64_t count() const { return rows_ * inner_; }

  /// body(offsets, y, n): n elements of the output from y on, from operand k at offsets[k] on.
  /// `grain`: elements that are worth a thread.
  template <class Body>
  void run(Pool& pool, int64_t grain, const Body& body) const {
    if (rows_ * inner_ == 0) return;
    if (rows_ == 1) {
      pool.parallel(inner_, grain, [&](int64_t begin, int64_t end) {
        Offsets offsets;
        for (size_t k = 0; k < kMaxOperands; ++k) offsets[k] = begin * steps_[k];
        body(offsets, begin, end - begin);
      });
      return;
    }
    pool.parallel(rows_, std::max<int64_t>(1, grain / inner_),
                  [&](int64_t begin, int64_t end) { run_rows(begin, end, body); });
  }

 private:
  template <class Body>
  void run_rows(int64_t begin, int64_t end, const Body& body) const {
    std::array<int64_t, 2 * GR_MAX_RANK> index{};
    Offsets offsets{};
    int64_t rest = begin;
    for (size_t d = dims_.size(); d-- > 0; rest /= dims_[d]) {
      index[d] = rest % dims_[d];
      for (size_t k = 0; k < kMaxOperands; ++k) offsets[k] += index[d] * strides_[k][d];
    }
    for (int64_t row = begin; row < end; ++row) {
      body(offsets, row * inner_, inner_);
      for (size_t d = dims_.size(); d-- > 0;) {
        for (size_t k = 0; k < kMaxOperands; ++k) offsets[k] += strides_[k][d];
        if (++index[d] < dims_[d]) break;
        for (size_t k = 0; k < kMaxOperands; ++k) offsets[k] -= strides_[k][d] * dims_[d];
        index[d] = 0;
      }
    }
  }

  int64_t rows_ = 1;
  int64_t inner_ = 1;
  host::Dims dims_;  // outer ones
  std::array<host::Dims, kMaxOperands> strides_;
  std::array<int64_t, kMaxOperands> steps_{};
};

/// The first input that has the output's dtype and shape: its memory may be shared. -1: none.
int same_shape_input(const host::NodeSpec& node);

/// Elements that are worth a thread: of plain arithmetic, and of functions such as exp.
inline constexpr int64_t kPlainGrain = 16384;
inline constexpr int64_t kFunctionGrain = 4096;

}  // namespace gradrack::cpu
