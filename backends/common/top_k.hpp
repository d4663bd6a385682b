// SPDX-License-Identifier: Apache-2.0
// TopK of dense rows: the one order that all backends in host memory share.
//
// Invariant: by value, then by place; NaN counts as largest. Rows are independent, so a backend may
// spread them over threads, each with scratch of its own.
#pragma once

#include <algorithm>

#include "backends/common/tensor_access.hpp"

namespace gradrack::host {

class TopK {
 public:
  explicit TopK(const NodeSpec& node)
      : largest_(node.get_int("largest", 1) != 0), has_places_(node.has_output(1)) {
    const Dims& dims = node.inputs[0].dims;
    const size_t axis = node.get_axis("axis", dims.size());
    size_ = dims[axis];
    kept_ = node.outputs[0].dims[axis];
    outer_ = product(dims, 0, axis);
    inner_ = product(dims, axis + 1, dims.size());
  }

  int64_t row_count() const { return outer_ * inner_; }
  /// Elements of a row: the scratch that rows() wants, in int64.
  int64_t size() const { return size_; }

  /// Rows [first, last).
  template <class T>
  void rows(const DLTensor* const* in, DLTensor* const* out, int64_t first, int64_t last,
            int64_t* scratch) const {
    for (int64_t row = first; row < last; ++row) {
      const int64_t o = row / inner_, i = row % inner_;
      const T* x = data<T>(in[0]) + o * size_ * inner_ + i;
      for (int64_t k = 0; k < size_; ++k) scratch[k] = k;
      std::partial_sort(scratch, scratch + kept_, scratch + size_, [&](int64_t a, int64_t b) {
        const T p = x[a * inner_], q = x[b * inner_];
        if (above(p, q)) return largest_;
        if (above(q, p)) return !largest_;
        return a < b;
      });
      for (int64_t k = 0; k < kept_; ++k) {
        const int64_t to = (o * kept_ + k) * inner_ + i;
        data<T>(out[0])[to] = x[scratch[k] * inner_];
        if (has_places_) data<int64_t>(out[1])[to] = scratch[k];
      }
    }
  }

 private:
  template <class T>
  static bool above(T p, T q) {
    const bool p_is_nan = p != p, q_is_nan = q != q;
    return p_is_nan || q_is_nan ? p_is_nan && !q_is_nan : p > q;
  }

  int64_t size_, kept_, outer_ = 1, inner_ = 1;
  bool largest_, has_places_;
};

}  // namespace gradrack::host
