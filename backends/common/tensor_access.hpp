// SPDX-License-Identifier: Apache-2.0
// Typed access to dense tensors, and walks over strided and broadcast index spaces.
//
// Used by the kernel families of backends in host memory. Invariant: tensors are dense and
// row-major, so a shape alone says where an element is. These walks are plain; a fast backend adds
// its own loops.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/common/kernel.hpp"

namespace gradrack::host {

using Dims = std::vector<int64_t>;

template <class T>
const T* data(const DLTensor* tensor) {
  return static_cast<const T*>(tensor->data);
}
template <class T>
T* data(DLTensor* tensor) {
  return static_cast<T*>(tensor->data);
}

/// Product of dims[first..last).
inline int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t k = first; k < last; ++k) count *= dims[k];
  return count;
}
inline int64_t product(const Dims& dims) { return product(dims, 0, dims.size()); }

/// Strides, in elements, of a dense row-major tensor.
inline Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) strides[k] = stride;
  return strides;
}

/// Strides that read a tensor of shape `from` as if broadcast to `to` (ONNX rules: aligned at the
/// last dim; a dim of 1 repeats, with stride 0). `from` must be broadcastable to `to`.
inline Dims broadcast_strides(const Dims& from, const Dims& to) {
  const Dims dense = row_major_strides(from);
  Dims strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] != 1) strides[lead + k] = dense[k];
  }
  return strides;
}

/// Walks all indices of `dims` in row-major order, keeping the offsets of several strided tensors:
/// for (Walk walk(dims, {a_strides, b_strides}); walk.more(); walk.next()) use walk.offset(0), ...
class Walk {
 public:
  Walk(Dims dims, std::vector<Dims> strides)
      : dims_(std::move(dims)),
        strides_(std::move(strides)),
        index_(dims_.size(), 0),
        offsets_(strides_.size(), 0),
        left_(product(dims_)) {}

  bool more() const { return left_ > 0; }
  int64_t offset(size_t tensor) const { return offsets_[tensor]; }
  const Dims& index() const { return index_; }
  void next() {
    --left_;
    for (size_t k = dims_.size(); k-- > 0;) {
      for (size_t t = 0; t < offsets_.size(); ++t) offsets_[t] += strides_[t][k];
      if (++index_[k] < dims_[k]) return;
      for (size_t t = 0; t < offsets_.size(); ++t) offsets_[t] -= strides_[t][k] * dims_[k];
      index_[k] = 0;
    }
  }

 private:
  Dims dims_;
  std::vector<Dims> strides_;
  Dims index_;
  Dims offsets_;
  int64_t left_;
};

/// Calls `body(T{})` with T the C++ type of a real dtype; false when there is none here.
template <class Body>
bool dispatch_real(gr_dtype_t dtype, Body body) {
  switch (dtype) {
    case GR_FLOAT32:
      body(float{});
      return true;
    case GR_FLOAT64:
      body(double{});
      return true;
    default:
      return false;
  }
}

/// Same for every dtype with a C++ type: reals, integers and bool (one byte, 0 or 1).
template <class Body>
bool dispatch_any(gr_dtype_t dtype, Body body) {
  switch (dtype) {
    case GR_INT8:
      body(int8_t{});
      return true;
    case GR_UINT8:
      body(uint8_t{});
      return true;
    case GR_INT32:
      body(int32_t{});
      return true;
    case GR_INT64:
      body(int64_t{});
      return true;
    case GR_BOOL:
      body(bool{});
      return true;
    default:
      return dispatch_real(dtype, body);
  }
}

}  // namespace gradrack::host
