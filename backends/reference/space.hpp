// SPDX-License-Identifier: Apache-2.0
// A walk over strided index spaces that allocates nothing at run time, for families that broadcast,
// cut or reduce. It goes with the kernels from functions of function_kernel.hpp.
//
// Invariant: Space visits indices in row-major order, so a dense output is written front to back.
#pragma once

#include <array>
#include <memory>
#include <type_traits>

#include "backends/common/kernel.hpp"
#include "backends/common/tensor_access.hpp"
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {

using host::Dims;
using host::Kernel;
using host::NodeSpec;
using host::TensorSpec;

/// The type that elements of T are computed and accumulated in.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

/// The kernel writes output 0 element for element over `input`, if the host likes.
inline KernelNeeds shares(int input) { return {0, {input}}; }
/// The kernel wants `count` doubles (or int64) of scratch.
inline KernelNeeds scratch(int64_t count) { return {count, {}}; }

/// The indices of `dims` with the offsets of N tensors that are read or written there.
template <size_t N>
class Space {
 public:
  using Offsets = std::array<int64_t, N>;

  Space(const Dims& dims, const std::array<Dims, N>& strides, const Offsets& base = {})
      : rank_(dims.size()), count_(host::product(dims)), base_(base) {
    for (size_t k = 0; k < rank_; ++k) {
      dims_[k] = dims[k];
      for (size_t t = 0; t < N; ++t) strides_[t][k] = strides[t][k];
    }
  }

  int64_t count() const { return count_; }

  /// body(offsets) for every index, last dim fastest.
  template <class Body>
  void each(Body body) const {
    std::array<int64_t, GR_MAX_RANK> index = {};
    Offsets at = base_;
    for (int64_t n = 0; n < count_; ++n) {
      body(static_cast<const Offsets&>(at));
      for (size_t k = rank_; k-- > 0;) {
        for (size_t t = 0; t < N; ++t) at[t] += strides_[t][k];
        if (++index[k] < dims_[k]) break;
        for (size_t t = 0; t < N; ++t) at[t] -= strides_[t][k] * dims_[k];
        index[k] = 0;
      }
    }
  }

 private:
  size_t rank_;
  int64_t count_;
  Offsets base_;
  std::array<int64_t, GR_MAX_RANK> dims_ = {};
  std::array<std::array<int64_t, GR_MAX_RANK>, N> strides_ = {};
};

/// Output 0's space with the first N inputs broadcast to it.
template <size_t N>
Space<N> broadcast_space(const NodeSpec& node) {
  const Dims& to = node.outputs[0].dims;
  std::array<Dims, N> strides;
  for (size_t k = 0; k < N; ++k) strides[k] = host::broadcast_strides(node.inputs[k].dims, to);
  return Space<N>(to, strides);
}

/// The first input that has output 0's type, so that its memory may be reused; -1 when none has.
inline int same_type_input(const NodeSpec& node) {
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const TensorSpec& input = node.inputs[k];
    if (input.present() && input.dtype == node.outputs[0].dtype &&
        input.dims == node.outputs[0].dims) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

}  // namespace gradrack::reference
