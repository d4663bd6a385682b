// SPDX-License-Identifier: Apache-2.0
// Sliding windows of Conv and the pools at concrete sizes, as three spatial axes (missing ones in
// front have size 1).
//
// Attributes are checked by the graph; here the padding of auto_pad becomes numbers. Invariant:
// output position o with kernel position k reads input position o * stride + k * dilation - pad, if
// inside.
#pragma once

#include <algorithm>
#include <array>

#include "backends/common/tensor_access.hpp"

namespace gradrack::host {

using Triple = std::array<int64_t, 3>;

struct Windows {
  static constexpr size_t kMaxAxes = 3;

  Triple in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Triple stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0}, pad_end{0, 0, 0};

  static int64_t volume(const Triple& t) { return t[0] * t[1] * t[2]; }

  /// Offset of input position o * stride + k * dilation - pad in a plane, or -1 when outside.
  int64_t input_offset(const Triple& o, const Triple& k) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < kMaxAxes; ++axis) {
      const int64_t at = o[axis] * stride[axis] + k[axis] * dilation[axis] - pad[axis];
      if (at < 0 || at >= in[axis]) return -1;
      offset = offset * in[axis] + at;
    }
    return offset;
  }
  /// Whether that position lies inside the input with its padding.
  bool in_padded(const Triple& o, const Triple& k) const {
    for (size_t axis = 0; axis < kMaxAxes; ++axis) {
      const int64_t at = o[axis] * stride[axis] + k[axis] * dilation[axis];
      if (at >= in[axis] + pad[axis] + pad_end[axis]) return false;
    }
    return true;
  }
};

/// Calls body(position, linear index) for each position of `size` in row-major order.
template <class Body>
void for_each_position(const Triple& size, Body body) {
  int64_t index = 0;
  for (int64_t a = 0; a < size[0]; ++a) {
    for (int64_t b = 0; b < size[1]; ++b) {
      for (int64_t c = 0; c < size[2]; ++c) body(Triple{a, b, c}, index++);
    }
  }
}

/// Windows of a node for x [N, C, spatial], y [N, M, spatial] and a kernel's sizes.
inline Windows make_windows(const NodeSpec& node, const Dims& x, const Dims& y,
                            const Dims& kernel) {
  Windows w;
  const size_t axes = kernel.size(), front = Windows::kMaxAxes - axes;
  const Dims strides = node.get_ints("strides"), dilations = node.get_ints("dilations");
  const Dims pads = node.get_ints("pads");
  const std::string auto_pad = node.get_string("auto_pad", "NOTSET");
  for (size_t k = 0; k < axes; ++k) {
    const size_t axis = front + k;
    w.in[axis] = x[k + 2];
    w.out[axis] = y[k + 2];
    w.kernel[axis] = kernel[k];
    if (!strides.empty()) w.stride[axis] = strides[k];
    if (!dilations.empty()) w.dilation[axis] = dilations[k];
    if (auto_pad == "NOTSET" && !pads.empty()) {
      w.pad[axis] = pads[k];
      w.pad_end[axis] = pads[axes + k];
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t extent = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
      const int64_t reach = (w.out[axis] - 1) * w.stride[axis] + extent;
      const int64_t total = std::max<int64_t>(reach - w.in[axis], 0);
      w.pad[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[axis] = total - w.pad[axis];
    }
  }
  return w;
}

/// Reason text when there are more spatial axes than three.
inline std::string refuse_axes(size_t rank) {
  if (rank <= 2 + Windows::kMaxAxes) return "";
  return "more than 3 spatial axes";
}

}  // namespace gradrack::host
