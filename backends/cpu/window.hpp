// SPDX-License-Identifier: Apache-2.0
// Window: the geometry of Conv and pooling, with concrete sizes.
//
// Read from a node's attributes (ONNX: strides, dilations, pads, auto_pad) when a kernel is made.
// At most three spatial axes; missing ones count as size 1, so that loops are always the same
// three.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backends/common/kernel.hpp"

namespace gradrack::cpu {

/// a / b rounded down; b > 0.
inline int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

struct Window {
  static constexpr size_t kAxes = 3;
  using Sizes = std::array<int64_t, kAxes>;

  Sizes in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};
  int64_t in_count = 1, out_count = 1, kernel_count = 1;

  /// The outputs p along axis `d` for which input p * stride + k * dilation - pad exists: [first,
  /// last).
  int64_t first_output(size_t d, int64_t k) const;
  int64_t last_output(size_t d, int64_t k) const;
  /// Input coordinate that output p sees at kernel place k.
  int64_t input_at(size_t d, int64_t p, int64_t k) const {
    return p * stride[d] + k * dilation[d] - pad[d];
  }
};

/// From shapes [N, C, in...], [N, M, out...] and kernel sizes; a reason in `why` when not known
/// here.
Window read_window(const host::NodeSpec& node, const std::vector<int64_t>& in,
                   const std::vector<int64_t>& out, const std::vector<int64_t>& kernel,
                   std::string* why);

}  // namespace gradrack::cpu
