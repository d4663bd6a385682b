// SPDX-License-Identifier: Apache-2.0
// Frame: the ATen tensors of one kernel, made once, pointed at the host's memory at each run.
//
// A family builds its views (transposed, sliced, broadcast, reshaped) when the frame is made; they
// share the storage of the tensor that they look at, so moving a storage moves them all. Invariant:
// binding allocates nothing, and no tensor here owns the bytes that it shows: inputs and outputs
// belong to the host's arena, scratch to the kernel's workspace.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "backends/common/kernel.hpp"

namespace gradrack::libtorch {

using host::NodeSpec;
using host::TensorSpec;
using Dims = std::vector<int64_t>;

/// ATen's name of a dtype; at::ScalarType::Undefined where it has none.
at::ScalarType scalar_type(gr_dtype_t dtype);

/// Dims as ATen takes them.
inline at::IntArrayRef sizes(const Dims& dims) { return {dims.data(), dims.size()}; }

class Frame {
 public:
  explicit Frame(const NodeSpec& node);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Dense tensors by node position; not defined where left out.
  const at::Tensor& in(size_t k) const { return inputs_[k].tensor; }
  const at::Tensor& out(size_t k) const { return outputs_[k].tensor; }
  /// A dense tensor in the workspace: what it holds between two runs is anybody's.
  at::Tensor scratch(const Dims& dims, at::ScalarType type);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Points all of them at the memory of one run.
  void bind(const DLTensor* const* in, DLTensor* const* out, void* workspace);

 private:
  struct Place {
    at::Tensor tensor;
    void* data = nullptr;  // where it was bound last
  };
  static void point(Place* place, void* data);

  std::vector<Place> inputs_, outputs_;
  std::vector<std::pair<Place, int64_t>> scratch_;  // with its offset
  int64_t workspace_bytes_ = 0;
};

}  // namespace gradrack::libtorch
