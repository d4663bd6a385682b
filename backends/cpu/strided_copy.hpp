// SPDX-License-Identifier: Apache-2.0
// StridedCopy: moves elements from one strided view to another of the same dims.
//
// Transpose, Slice, Expand, Concat, Split, Pad and their gradients are all this, with different
// strides. Dims are merged and ordered when the kernel is made: long runs go by memcpy, transposes
// in square blocks. Knows bytes alone, not dtypes. Invariant: the destination is written once per
// element.
#pragma once

#include <cstdint>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/pool.hpp"

namespace gradrack::cpu {

class StridedCopy {
 public:
  struct View {
    int64_t offset = 0;  // elements
    host::Dims strides;  // elements; 0 repeats, negative walks back
  };
  /// Destination strides must not be 0 for dims above 1. `bytes` an element: 1, 2, 4 or 8.
  StridedCopy(const host::Dims& dims, View from, View to, int64_t bytes);

  void run(Pool& pool, const void* from, void* to) const;

 private:
  struct Dim {
    int64_t size, from, to;
  };
  void run_range(const char* from, char* to, int64_t begin, int64_t end) const;

  std::vector<Dim> outer_;  // outermost first
  Dim rows_{1, 0, 0};       // second innermost
  Dim inner_{1, 1, 1};
  int64_t from_offset_ = 0, to_offset_ = 0;  // bytes from here on
  int64_t outer_count_ = 1;
  int64_t bytes_ = 4;
};

}  // namespace gradrack::cpu
