// SPDX-License-Identifier: Apache-2.0
// ConvShape: the sizes of Conv and its gradients, whichever of the three a node is.
#pragma once

#include <algorithm>
#include <string>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/window.hpp"

namespace gradrack::cpu {

/// X [batch, group * channels, in], W [group * filters, channels, kernel], Y [batch, group *
/// filters, out].
struct ConvShape {
  /// A reason in `why` where the geometry is not known here.
  ConvShape(const host::NodeSpec& node, std::string* why)
      : ConvShape(node, x_dims(node), w_dims(node), y_dims(node), why) {}

  int64_t x_group() const { return channels * window.in_count; }
  int64_t y_group() const { return filters * window.out_count; }
  int64_t w_group() const { return filters * depth; }
  /// Multiply-adds.
  int64_t work() const { return batch * group * w_group() * window.out_count; }

  Window window;
  int64_t batch, group, channels, filters;
  int64_t depth;  // taps of an output

 private:
  using Dims = host::Dims;
  ConvShape(const host::NodeSpec& node, const Dims& x, const Dims& w, const Dims& y,
            std::string* why)
      : window(read_window(node, x, y, {w.begin() + 2, w.end()}, why)),
        batch(x[0]),
        group(node.get_int("group", 1)),
        channels(w[1]),
        filters(w[0] / std::max<int64_t>(1, group)),
        depth(channels * window.kernel_count) {}
  static const Dims& x_dims(const host::NodeSpec& n) {
    if (n.op == "Conv") return n.inputs[0].dims;
    return n.op == "gradrack.ConvInputGrad" ? n.outputs[0].dims : n.inputs[1].dims;
  }
  static const Dims& w_dims(const host::NodeSpec& n) {
    return n.op == "gradrack.ConvWeightGrad" ? n.outputs[0].dims : n.inputs[1].dims;
  }
  static const Dims& y_dims(const host::NodeSpec& n) {
    return n.op == "Conv" ? n.outputs[0].dims : n.inputs[0].dims;
  }
};

/// Parts of a kernel's workspace, aligned as it is.
inline int64_t float_bytes(int64_t count) {
  return (count * int64_t{sizeof(float)} + 63) / 64 * 64;
}

}  // namespace gradrack::cpu
