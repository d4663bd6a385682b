// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in both modes, and its gradients in training mode; GroupNormalization.
//
// ATen's own training mode keeps another variance than ONNX's (divided by n - 1), so statistics
// are collected first and the normalising is that of evaluation. Formulas: docs/operators.md.
#include <ATen/native/batch_norm.h>
#include <ATen/native/group_norm.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>

#include "backends/common/tensor_access.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// x as [N, C, L], with the batch's statistics of each channel.
struct Channels {
  int64_t samples, channels, plane;
  double epsilon;
  at::Tensor mean, variance, inverse;

  Channels(const NodeSpec& node, size_t x, Frame& f) {
    const Dims& dims = node.inputs[x].dims;
    samples = dims[0];
    channels = dims[1];
    plane = host::product(dims, 2, dims.size());
    epsilon = node.get_float("epsilon");
    for (at::Tensor* each : {&mean, &variance, &inverse}) {
      *each = f.scratch({channels}, f.in(x).scalar_type());
    }
  }
  at::Tensor view(const at::Tensor& x) const { return x.view({samples, channels, plane}); }
  void collect(const at::Tensor& x) {
    at::native::batch_norm_cpu_collect_stats_stub(at::kCPU, mean, variance, x);
    variance.div_(static_cast<double>(samples * plane));  // it was their sum
  }
  void invert() {
    inverse.copy_(variance);
    inverse.add_(epsilon).rsqrt_();
  }
};

std::string claim_batch_norm(const NodeSpec& node) {
  if (node.inputs[0].count == 0) return "no elements";
  return claim_wide(node);
}

/// What to do for one running statistic: old * momentum + batch * (1 - momentum).
struct Running {
  at::Tensor old, batch, to;
  void update(double momentum) {
    if (!to.defined()) return;
    at::mul_out(to, old, momentum);
    to.add_(batch, 1.0 - momentum);
  }
};

Body build_batch_norm(const NodeSpec& node, Frame& f) {
  Channels ch(node, 0, f);
  const bool training = node.get_int("training_mode") != 0;
  at::Tensor mean = training ? ch.mean : f.in(3), variance = training ? ch.variance : f.in(4);
  const auto output = [&](size_t k) { return node.has_output(k) ? f.out(k) : at::Tensor(); };
  Running run_mean{f.in(3), ch.mean, output(1)}, run_variance{f.in(4), ch.variance, output(2)};
  return [=, x = ch.view(f.in(0)), scale = f.in(1), bias = f.in(2), y = ch.view(f.out(0)),
          momentum = node.get_float("momentum")](const Call&) mutable {
    if (training) ch.collect(x);
    at::native::batch_norm_cpu_stub(at::kCPU, y, x, scale, bias, ch.mean, ch.inverse, mean,
                                    variance, false, ch.epsilon);
    if (!training) return;
    run_mean.update(momentum);
    run_variance.update(momentum);
  };
}

Body build_batch_norm_grad(const NodeSpec& node, Frame& f) {
  Channels ch(node, 1, f);
  return [ch, gy = ch.view(f.in(0)), x = ch.view(f.in(1)), scale = f.in(2),
          gx = ch.view(f.out(0))](const Call&) mutable {
    at::Tensor none, none_either;
    ch.collect(x);
    ch.invert();
    at::native::batch_norm_cpu_backward_stub(at::kCPU, gx, none, none_either, gy, x, scale, none,
                                             none, ch.mean, ch.inverse, true, ch.epsilon);
  };
}

Body build_batch_norm_scale_grad(const NodeSpec& node, Frame& f) {
  Channels ch(node, 1, f);
  return [ch, gy = ch.view(f.in(0)), x = ch.view(f.in(1)), gscale = f.out(0)](const Call&) mutable {
    at::Tensor none, none_either;
    ch.collect(x);
    ch.invert();
    at::native::batch_norm_cpu_backward_stub(at::kCPU, none, gscale, none_either, gy, x, none, none,
                                             none, ch.mean, ch.inverse, true, ch.epsilon);
  };
}

Body build_group_norm(const NodeSpec& node, Frame& f) {
  const Dims& dims = node.inputs[0].dims;
  const int64_t groups = node.get_int("num_groups"), samples = dims[0], channels = dims[1];
  const int64_t plane = host::product(dims, 2, dims.size());
  at::Tensor mean = f.scratch({samples, groups}, f.in(0).scalar_type());
  at::Tensor inverse = f.scratch({samples, groups}, f.in(0).scalar_type());
  return [=, x = f.in(0), scale = f.in(1), bias = f.in(2), y = f.out(0),
          epsilon = node.get_float("epsilon")](const Call&) mutable {
    if (x.numel() == 0) return;
    at::native::GroupNormKernel(at::kCPU, x, scale, bias, samples, channels, plane, groups, epsilon,
                                y, mean, inverse);
  };
}

}  // namespace

void add_batch_norm_kernels(host::KernelTable& table) {
  add(table, "BatchNormalization", claim_batch_norm, build_batch_norm);
  add(table, "gradrack.BatchNormalizationGrad", claim_batch_norm, build_batch_norm_grad);
  add(table, "gradrack.BatchNormalizationScaleGrad", claim_batch_norm, build_batch_norm_scale_grad);
  add(table, "GroupNormalization", claim_wide, build_group_norm);
}

}  // namespace gradrack::libtorch
