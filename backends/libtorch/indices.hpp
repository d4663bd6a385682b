// SPDX-License-Identifier: Apache-2.0
// Indices: an input of indices as ATen wants them: int64, not negative, within range.
//
// Used by the families that pick by index. Invariant: after read() every index is in [0, size);
// the first that is not ends the run with its value and position.
#pragma once

#include "backends/libtorch/aten_kernel.hpp"

namespace gradrack::libtorch {

class Indices {
 public:
  Indices(const NodeSpec& node, size_t input, int64_t size, Frame& f)
      : input_(input),
        wide_(node.inputs[input].dtype == GR_INT64),
        size_(size),
        shaped_(f.scratch(node.inputs[input].dims, at::kLong)),
        flat_(shaped_.view({shaped_.numel()})) {}

  void read(const Call& call) {
    const void* from = call.in[input_]->data;
    auto* to = static_cast<int64_t*>(flat_.data_ptr());
    for (int64_t k = 0, count = flat_.numel(); k < count; ++k) {
      const int64_t given =
          wide_ ? static_cast<const int64_t*>(from)[k] : static_cast<const int32_t*>(from)[k];
      to[k] = given < 0 ? given + size_ : given;
      if (to[k] >= 0 && to[k] < size_) continue;
      throw DataError(GR_OUT_OF_RANGE, "index " + std::to_string(given) + " at position " +
                                           std::to_string(k) + " is out of range for an axis of " +
                                           std::to_string(size_));
    }
  }
  const at::Tensor& shaped() const { return shaped_; }
  const at::Tensor& flat() const { return flat_; }

 private:
  size_t input_;
  bool wide_;
  int64_t size_;
  at::Tensor shaped_, flat_;
};

}  // namespace gradrack::libtorch
