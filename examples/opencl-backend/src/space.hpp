// SPDX-License-Identifier: Apache-2.0
// Space: an index space with the places of several tensors in it, as OpenCL C text and arguments.
//
// Between the shapes of a node and the text of its kernel. Sizes and strides become arguments, so
// that one program serves all shapes of one pattern; only the number of dimensions (after merging)
// and strides of 0 and 1 are part of the text. Invariant: index i counts the space's elements in
// row-major order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opencl_backend {

using Dims = std::vector<int64_t>;

int64_t product(const Dims& dims, size_t first, size_t last);
inline int64_t product(const Dims& dims) { return product(dims, 0, dims.size()); }
/// Strides, in elements, of a dense row-major tensor.
Dims dense_strides(const Dims& dims);
/// Strides that read a tensor of shape `from` as if broadcast to `to` (aligned at the last dim).
Dims broadcast_strides(const Dims& from, const Dims& to);

/// Where the element of index (0, ..., 0) is, and how far apart neighbours are.
struct Layout {
  Dims strides;
  int64_t base = 0;
};

class Space {
 public:
  /// All layouts have one stride for each dim.
  Space(Dims dims, std::vector<Layout> layouts);

  int64_t count() const { return count_; }
  /// Dims after merging, at least one.
  const Dims& dims() const { return dims_; }
  const std::vector<Layout>& layouts() const { return layouts_; }

  /// Macros for a prefix such as "Y": Y_PARAMS (", const IDX ..." for a kernel's head), Y_INDEX(i)
  /// (statements that take i apart), Y_AT0, Y_AT1, ... (places, after Y_INDEX), and Y_NEXT for
  /// going on by one element (with Y_INDEX's variables not const).
  std::string text(const std::string& prefix) const;
  /// The values for Y_PARAMS, in order.
  std::vector<int64_t> arguments() const;

 private:
  Dims dims_;
  std::vector<Layout> layouts_;
  int64_t count_;
};

}  // namespace opencl_backend
