// SPDX-License-Identifier: Apache-2.0
// Conv and its gradients to input and weight, over one to three spatial axes.
//
// ATen pads both ends of an axis alike; where the ends differ the input is padded here. The
// gradients are one function of ATen's, told by a mask which of them is wanted. Formula:
// docs/operators.md.
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/zero.h>

#include "backends/common/window.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// The numbers of a convolution of x [N, C, in] with w [M, C/group, kernel] to y [N, M, out].
struct Geometry {
  Dims stride, dilation, pad, zeros;
  Dims pad_front, padded;  // where pads differ: of x, and its dims with them; else empty
  int64_t group;

  Geometry(const NodeSpec& node, const Dims& x, const Dims& w, const Dims& y)
      : group(node.get_int("group")) {
    const Dims kernel(w.begin() + 2, w.end());
    const host::Windows win = host::make_windows(node, x, y, kernel);
    bool differ = false;
    for (size_t k = 0; k < kernel.size(); ++k) {
      const size_t axis = host::Windows::kMaxAxes - kernel.size() + k;
      stride.push_back(win.stride[axis]);
      dilation.push_back(win.dilation[axis]);
      pad.push_back(win.pad[axis]);
      differ |= win.pad[axis] != win.pad_end[axis];
      padded.push_back(x[k + 2] + win.pad[axis] + win.pad_end[axis]);
    }
    zeros.assign(kernel.size(), 0);
    if (differ) {
      pad_front = pad;
      pad = zeros;
      padded.insert(padded.begin(), x.begin(), x.begin() + 2);
    } else {
      padded.clear();
    }
  }
  bool pads_here() const { return !padded.empty(); }
  /// x inside a padded tensor.
  at::Tensor inside(at::Tensor whole, const Dims& x) const {
    for (size_t k = 0; k < pad_front.size(); ++k) {
      whole = whole.narrow(static_cast<int64_t>(k) + 2, pad_front[k], x[k + 2]);
    }
    return whole;
  }
};

/// The input of a convolution, with its padding where that is made here.
struct PaddedInput {
  at::Tensor x, whole, inside;

  PaddedInput(const Geometry& g, const at::Tensor& input, const Dims& dims, Frame& f)
      : x(input), whole(input) {
    if (!g.pads_here()) return;
    whole = f.scratch(g.padded, input.scalar_type());
    inside = g.inside(whole, dims);
  }
  const at::Tensor& fill() {
    if (inside.defined()) {
      whole.zero_();
      inside.copy_(x);
    }
    return whole;
  }
};

Body build_conv(const NodeSpec& node, Frame& f) {
  const Geometry g(node, node.inputs[0].dims, node.inputs[1].dims, node.outputs[0].dims);
  PaddedInput x(g, f.in(0), node.inputs[0].dims, f);
  const std::optional<at::Tensor> bias = node.has_input(2) ? std::optional(f.in(2)) : std::nullopt;
  return [=, w = f.in(1), y = f.out(0)](const Call&) mutable {
    if (y.numel() == 0) return;
    y.copy_(at::convolution(x.fill(), w, bias, sizes(g.stride), sizes(g.pad), sizes(g.dilation),
                            false, sizes(g.zeros), g.group));
  };
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward(const Geometry& g, const at::Tensor& gy,
                                                        const at::Tensor& x, const at::Tensor& w,
                                                        bool input, bool weight) {
  return at::convolution_backward(gy, x, w, at::OptionalIntArrayRef(), sizes(g.stride),
                                  sizes(g.pad), sizes(g.dilation), false, sizes(g.zeros), g.group,
                                  {input, weight, false});
}

Body build_conv_input_grad(const NodeSpec& node, Frame& f) {
  const Dims& x = node.outputs[0].dims;
  const Geometry g(node, x, node.inputs[1].dims, node.inputs[0].dims);
  // Of the input only the dims matter.
  const at::Tensor like = g.pads_here() ? f.scratch(g.padded, f.out(0).scalar_type()) : f.out(0);
  return [=, gy = f.in(0), w = f.in(1), gx = f.out(0)](const Call&) mutable {
    if (gx.numel() == 0 || gy.numel() == 0) {
      gx.zero_();
      return;
    }
    gx.copy_(g.inside(std::get<0>(backward(g, gy, like, w, true, false)), x));
  };
}

Body build_conv_weight_grad(const NodeSpec& node, Frame& f) {
  const Geometry g(node, node.inputs[1].dims, node.outputs[0].dims, node.inputs[0].dims);
  PaddedInput x(g, f.in(1), node.inputs[1].dims, f);
  return [=, gy = f.in(0), gw = f.out(0)](const Call&) mutable {
    if (gw.numel() == 0 || gy.numel() == 0) {
      gw.zero_();
      return;
    }
    gw.copy_(std::get<1>(backward(g, gy, x.fill(), gw, false, true)));
  };
}

std::string claim_conv(const NodeSpec& node) {
  const std::string reason = host::refuse_axes(node.inputs[0].rank());
  return reason.empty() ? claim_reals(node) : reason;
}

}  // namespace

void add_conv_kernels(host::KernelTable& table) {
  add(table, "Conv", claim_conv, build_conv);
  add(table, "gradrack.ConvInputGrad", claim_conv, build_conv_input_grad);
  add(table, "gradrack.ConvWeightGrad", claim_conv, build_conv_weight_grad);
}

}  // namespace gradrack::libtorch
