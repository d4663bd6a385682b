// SPDX-License-Identifier: Apache-2.0
// Activations with attributes and their gradients: Gelu, Swish, LeakyRelu, GeluGrad, SwishGrad;
// Clip.
#include <ATen/ops/clamp.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include <cmath>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

std::string approximation(const NodeSpec& node) { return node.get_string("approximate", "none"); }

Body build_gelu(const NodeSpec& node, Frame& f) {
  return [x = f.in(0), y = f.out(0), how = approximation(node)](const Call&) mutable {
    at::gelu_out(y, x, how);
  };
}

Body build_gelu_grad(const NodeSpec& node, Frame& f) {
  return [gy = f.in(0), x = f.in(1), gx = f.out(0), how = approximation(node)](
             const Call&) mutable { at::gelu_backward_out(gx, gy, x, how); };
}

std::string claim_silu(const NodeSpec& node) {
  if (node.get_float("alpha", 1.0) != 1.0) return "ATen has Swish with alpha 1 alone";
  return claim_reals(node);
}

Body build_silu(const NodeSpec&, Frame& f) {
  return [x = f.in(0), y = f.out(0)](const Call&) mutable { at::silu_out(y, x); };
}

Body build_silu_grad(const NodeSpec&, Frame& f) {
  return [gy = f.in(0), x = f.in(1), gx = f.out(0)](const Call&) mutable {
    at::silu_backward_out(gx, gy, x);
  };
}

Body build_leaky_relu(const NodeSpec& node, Frame& f) {
  return [x = f.in(0), y = f.out(0), alpha = node.get_float("alpha", 0.01)](const Call&) mutable {
    at::leaky_relu_out(y, x, alpha);
  };
}

/// A limit of the run; none where it is left out. A NaN limits nothing.
std::optional<at::Scalar> limit(const at::Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  const at::Scalar value = tensor.item();
  if (value.isFloatingPoint() && std::isnan(value.toDouble())) return std::nullopt;
  return value;
}

Body build_clip(const NodeSpec& node, Frame& f) {
  const at::Tensor low = node.has_input(1) ? f.in(1) : at::Tensor();
  const at::Tensor high = node.has_input(2) ? f.in(2) : at::Tensor();
  return [x = f.in(0), low, high, y = f.out(0)](const Call&) mutable {
    const std::optional<at::Scalar> from = limit(low), to = limit(high);
    if (from.has_value() || to.has_value()) {
      at::clamp_out(y, x, from, to);
    } else {
      y.copy_(x);
    }
  };
}

}  // namespace

void add_activation_kernels(host::KernelTable& table) {
  add(table, "Gelu", claim_reals, build_gelu, {{0}});
  add(table, "gradrack.GeluGrad", claim_reals, build_gelu_grad, {{0, 1}});
  add(table, "Swish", claim_silu, build_silu, {{0}});
  add(table, "gradrack.SwishGrad", claim_silu, build_silu_grad, {{0, 1}});
  add(table, "LeakyRelu", claim_reals, build_leaky_relu, {{0}});
  add(table, "Clip", claim_numbers, build_clip, {{0}});
}

}  // namespace gradrack::libtorch
