// SPDX-License-Identifier: Apache-2.0
// Window: reads the geometry. Formulas from the ONNX operators Conv-22 and MaxPool-22.
#include "backends/cpu/window.hpp"

#include <algorithm>

namespace gradrack::cpu {
int64_t Window::first_output(size_t d, int64_t k) const {
  // p * stride >= pad - k * dilation
  const int64_t need = pad[d] - k * dilation[d];
  return std::clamp<int64_t>(-floor_div(-need, stride[d]), 0, out[d]);
}

int64_t Window::last_output(size_t d, int64_t k) const {
  // p * stride <= in - 1 + pad - k * dilation
  const int64_t most = in[d] - 1 + pad[d] - k * dilation[d];
  return std::clamp<int64_t>(floor_div(most, stride[d]) + 1, first_output(d, k), out[d]);
}

Window read_window(const host::NodeSpec& node, const std::vector<int64_t>& in,
                   const std::vector<int64_t>& out, const std::vector<int64_t>& kernel,
                   std::string* why) {
  Window w;
  const size_t axes = kernel.size();
  if (axes > Window::kAxes) {
    *why = std::to_string(axes) + " spatial axes, at most 3 are known";
    return w;
  }
  const auto strides = node.get_ints("strides"), dilations = node.get_ints("dilations");
  const auto pads = node.get_ints("pads");
  const std::string auto_pad = node.get_string("auto_pad", "NOTSET");
  for (size_t k = 0; k < axes; ++k) {
    const size_t d = Window::kAxes - axes + k;  // innermost axes last
    w.in[d] = in[k + 2];
    w.out[d] = out[k + 2];
    w.kernel[d] = kernel[k];
    if (!strides.empty()) w.stride[d] = strides[k];
    if (!dilations.empty()) w.dilation[d] = dilations[k];
    if (auto_pad == "NOTSET" && !pads.empty()) w.pad[d] = pads[k];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t extent = w.dilation[d] * (w.kernel[d] - 1) + 1;
      const int64_t total = std::max<int64_t>(0, (w.out[d] - 1) * w.stride[d] + extent - w.in[d]);
      w.pad[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
  }
  for (size_t d = 0; d < Window::kAxes; ++d) {
    w.in_count *= w.in[d];
    w.out_count *= w.out[d];
    w.kernel_count *= w.kernel[d];
  }
  return w;
}

}  // namespace gradrack::cpu
