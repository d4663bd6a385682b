// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their gradients, over one to three spatial axes; one axis is seen as
// two.
//
// ATen pads both ends alike, by half a window at most, and rounds down: other windows are refused.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/max_pool3d_with_indices.h>
#include <ATen/ops/max_pool3d_with_indices_backward.h>

#include "backends/common/window.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// A pool's numbers for two or three axes.
struct Geometry {
  size_t axes;
  Dims kernel, stride, dilation, pad;
  Dims x, y;  // with the axes that were added
  bool count_padding;
  std::string refused;

  Geometry(const NodeSpec& node, const Dims& x_dims, const Dims& y_dims)
      : axes(x_dims.size() - 2 == 3 ? 3 : 2),
        count_padding(node.get_int("count_include_pad", 0) != 0) {
    const host::Windows win =
        host::make_windows(node, x_dims, y_dims, node.get_ints("kernel_shape"));
    x = {x_dims[0], x_dims[1]};
    y = {y_dims[0], y_dims[1]};
    for (size_t axis = host::Windows::kMaxAxes - axes; axis < host::Windows::kMaxAxes; ++axis) {
      x.push_back(win.in[axis]);
      y.push_back(win.out[axis]);
      kernel.push_back(win.kernel[axis]);
      stride.push_back(win.stride[axis]);
      dilation.push_back(win.dilation[axis]);
      pad.push_back(win.pad[axis]);
      refuse(win, axis);
    }
  }
  bool empty() const { return product(x) == 0 || product(y) == 0; }

 private:
  static int64_t product(const Dims& dims) { return host::product(dims); }
  void refuse(const host::Windows& win, size_t axis) {
    const int64_t extent = win.dilation[axis] * (win.kernel[axis] - 1) + 1;
    const int64_t rounded = (win.in[axis] + 2 * win.pad[axis] - extent) / win.stride[axis] + 1;
    if (win.pad[axis] != win.pad_end[axis]) refused = "pads that differ at both ends";
    if (win.pad[axis] * 2 > win.kernel[axis]) refused = "padding of more than half a window";
    if (rounded != win.out[axis]) refused = "a last window beyond the padding (ceil_mode)";
  }
};

Geometry forward_geometry(const NodeSpec& node) {
  return {node, node.inputs[0].dims, node.outputs[0].dims};
}

std::string claim_pool(const NodeSpec& node, const Geometry& g, bool has_dilation) {
  for (const int64_t d : g.dilation) {
    if (d != 1 && !has_dilation) return "ATen has no dilation here";
  }
  if (!g.refused.empty()) return g.refused;
  return claim_wide(node);
}

/// Dims of a pool's input in the node: output 0 of a gradient, input 0 otherwise.
template <bool kMax, bool kGradient>
std::string claim(const NodeSpec& node) {
  const std::string reason = host::refuse_axes(node.inputs[0].rank());
  if (!reason.empty()) return reason;
  if (!kGradient && node.has_output(1)) return "indices";
  const Dims& x = kGradient ? node.outputs[0].dims : node.inputs[0].dims;
  const Dims& y = kGradient ? node.inputs[0].dims : node.outputs[0].dims;
  return claim_pool(node, Geometry(node, x, y), kMax);
}

void max_pool(const Geometry& g, at::Tensor& y, at::Tensor& places, const at::Tensor& x) {
  const auto k = sizes(g.kernel), s = sizes(g.stride), p = sizes(g.pad), d = sizes(g.dilation);
  if (g.axes == 2) {
    at::max_pool2d_with_indices_out(y, places, x, k, s, p, d, false);
  } else {
    at::max_pool3d_with_indices_out(y, places, x, k, s, p, d, false);
  }
}

Body build_max_pool(const NodeSpec& node, Frame& f) {
  const Geometry g = forward_geometry(node);
  at::Tensor places = f.scratch(g.y, at::kLong);
  return [=, x = f.in(0).view(sizes(g.x)), y = f.out(0).view(sizes(g.y))](const Call&) mutable {
    if (!g.empty()) max_pool(g, y, places, x);
  };
}

Body build_max_pool_grad(const NodeSpec& node, Frame& f) {
  const Geometry g(node, node.outputs[0].dims, node.inputs[0].dims);
  at::Tensor places = f.scratch(g.y, at::kLong), y = f.scratch(g.y, f.in(1).scalar_type());
  return [=, gy = f.in(0).view(sizes(g.y)), x = f.in(1).view(sizes(g.x)),
          gx = f.out(0).view(sizes(g.x))](const Call&) mutable {
    const auto k = sizes(g.kernel), s = sizes(g.stride), p = sizes(g.pad), d = sizes(g.dilation);
    if (g.empty()) {
      gx.zero_();
      return;
    }
    max_pool(g, y, places, x);
    if (g.axes == 2) {
      at::max_pool2d_with_indices_backward_out(gx, gy, x, k, s, p, d, false, places);
    } else {
      at::max_pool3d_with_indices_backward_out(gx, gy, x, k, s, p, d, false, places);
    }
  };
}

Body build_average_pool(const NodeSpec& node, Frame& f) {
  const Geometry g = forward_geometry(node);
  return [=, x = f.in(0).view(sizes(g.x)), y = f.out(0).view(sizes(g.y))](const Call&) mutable {
    const auto k = sizes(g.kernel), s = sizes(g.stride), p = sizes(g.pad);
    if (g.empty()) return;
    if (g.axes == 2) {
      at::avg_pool2d_out(y, x, k, s, p, false, g.count_padding);
    } else {
      at::avg_pool3d_out(y, x, k, s, p, false, g.count_padding);
    }
  };
}

Body build_average_pool_grad(const NodeSpec& node, Frame& f) {
  const Geometry g(node, node.outputs[0].dims, node.inputs[0].dims);
  // Of the pool's input only the dims matter.
  return [=, gy = f.in(0).view(sizes(g.y)), gx = f.out(0).view(sizes(g.x))](const Call&) mutable {
    const auto k = sizes(g.kernel), s = sizes(g.stride), p = sizes(g.pad);
    if (g.empty()) {
      gx.zero_();
    } else if (g.axes == 2) {
      at::avg_pool2d_backward_out(gx, gy, gx, k, s, p, false, g.count_padding, std::nullopt);
    } else {
      at::avg_pool3d_backward_out(gx, gy, gx, k, s, p, false, g.count_padding, std::nullopt);
    }
  };
}

}  // namespace

void add_pool_kernels(host::KernelTable& table) {
  add(table, "MaxPool", claim<true, false>, build_max_pool);
  add(table, "gradrack.MaxPoolGrad", claim<true, true>, build_max_pool_grad);
  add(table, "AveragePool", claim<false, false>, build_average_pool);
  add(table, "gradrack.AveragePoolGrad", claim<false, true>, build_average_pool_grad);
}

}  // namespace gradrack::libtorch
