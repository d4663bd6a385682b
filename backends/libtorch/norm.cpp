// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, RMSNormalization and their gradients.
//
// ATen's kernels for layer norm are called below their dispatcher, since there alone
// they write where they are told. RMS norm, which ATen has for GPUs only, is made of a norm and
// products. Formulas: docs/operators.md.
#include <ATen/native/layer_norm.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

#include "backends/common/tensor_access.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// x as rows of n elements, normalised from attribute `axis` on.
struct Rows {
  int64_t count, n;
  double epsilon;

  Rows(const NodeSpec& node, size_t x) {
    const Dims& dims = node.inputs[x].dims;
    const size_t axis = node.get_axis("axis", dims.size(), -1);
    count = host::product(dims, 0, axis);
    n = host::product(dims, axis, dims.size());
    epsilon = node.get_float("epsilon");
  }
  at::Tensor view(const at::Tensor& x) const { return x.view({count, n}); }
};

/// An output, or scratch where nothing reads it.
at::Tensor output_or_scratch(const NodeSpec& node, size_t k, const Dims& dims, Frame& f) {
  if (node.has_output(k)) return f.out(k).view(sizes(dims));
  return f.scratch(dims, f.out(0).scalar_type());
}

Body build_layer_norm(const NodeSpec& node, Frame& f) {
  const Rows r(node, 0);
  const at::Tensor bias = node.has_input(2) ? f.in(2).view({r.n}) : at::Tensor();
  at::Tensor mean = output_or_scratch(node, 1, {r.count}, f);
  at::Tensor inverse = output_or_scratch(node, 2, {r.count}, f);
  return [=, x = r.view(f.in(0)), scale = f.in(1).view({r.n}),
          y = r.view(f.out(0))](const Call&) mutable {
    if (x.numel() == 0) return;
    at::native::LayerNormKernel(at::kCPU, x, scale, bias, r.count, r.n, r.epsilon, &y, &mean,
                                &inverse);
  };
}

/// The statistics are made again; the normalised rows that come with them are not needed.
struct LayerStatistics {
  Rows r;
  at::Tensor mean, inverse;

  LayerStatistics(const NodeSpec& node, Frame& f)
      : r(node, 1),
        mean(f.scratch({r.count}, f.in(1).scalar_type())),
        inverse(f.scratch({r.count}, f.in(1).scalar_type())) {}

  void make(const at::Tensor& x, at::Tensor* rows) {
    at::native::LayerNormKernel(at::kCPU, x, at::Tensor(), at::Tensor(), r.count, r.n, r.epsilon,
                                rows, &mean, &inverse);
  }
};

/// ATen's formula takes a difference of terms that grow with 1 / sqrt(epsilon).
std::string claim_layer_norm_grad(const NodeSpec& node) {
  return Rows(node, 1).n == 1 ? "rows of one element" : claim_wide(node);
}

Body build_layer_norm_grad(const NodeSpec& node, Frame& f) {
  LayerStatistics s(node, f);
  return [s, gy = s.r.view(f.in(0)), x = s.r.view(f.in(1)), scale = f.in(2).view({s.r.n}),
          gx = s.r.view(f.out(0))](const Call&) mutable {
    if (x.numel() == 0) return;
    at::Tensor none;
    s.make(x, &gx);
    at::native::LayerNormBackwardKernel(at::kCPU, gy, x, s.mean, s.inverse, scale, s.r.count, s.r.n,
                                        &gx, &none, &none);
  };
}

Body build_layer_norm_scale_grad(const NodeSpec& node, Frame& f) {
  LayerStatistics s(node, f);
  at::Tensor normal = f.scratch({s.r.count, s.r.n}, f.in(1).scalar_type());
  return [s, normal, gy = s.r.view(f.in(0)), x = s.r.view(f.in(1)),
          gscale = f.out(0).view({s.r.n})](const Call&) mutable {
    if (x.numel() > 0) s.make(x, &normal);
    at::mul_out(normal, normal, gy);
    at::sum_out(gscale, normal, 0, false, gscale.scalar_type());
  };
}

/// 1 / sqrt(mean(x^2) + epsilon) of each row.
struct RmsStatistics {
  Rows r;
  at::Tensor inverse;  // [rows, 1]

  RmsStatistics(const NodeSpec& node, size_t x, Frame& f)
      : r(node, x), inverse(f.scratch({r.count, 1}, f.in(x).scalar_type())) {}

  void make(const at::Tensor& x) {
    at::linalg_vector_norm_out(inverse, x, 2, at::IntArrayRef(1), true);
    inverse.mul_(inverse).div_(static_cast<double>(r.n)).add_(r.epsilon).rsqrt_();
  }
};

Body build_rms_norm(const NodeSpec& node, Frame& f) {
  RmsStatistics s(node, 0, f);
  return [s, x = s.r.view(f.in(0)), scale = f.in(1).view({s.r.n}),
          y = s.r.view(f.out(0))](const Call&) mutable {
    if (x.numel() == 0) return;
    s.make(x);
    at::mul_out(y, x, s.inverse);
    y.mul_(scale);
  };
}

/// gx = r * (g - normal * mean(g * normal)), with g = gy * scale.
Body build_rms_norm_grad(const NodeSpec& node, Frame& f) {
  RmsStatistics s(node, 1, f);
  const at::ScalarType type = f.in(1).scalar_type();
  at::Tensor normal = f.scratch({s.r.count, s.r.n}, type);
  at::Tensor product = f.scratch({s.r.count, s.r.n}, type);
  at::Tensor along = f.scratch({s.r.count, 1}, type);
  return [=, gy = s.r.view(f.in(0)), x = s.r.view(f.in(1)), scale = f.in(2).view({s.r.n}),
          gx = s.r.view(f.out(0))](const Call&) mutable {
    if (x.numel() == 0) return;
    s.make(x);
    at::mul_out(normal, x, s.inverse);
    at::mul_out(gx, gy, scale);
    at::mul_out(product, gx, normal);
    at::sum_out(along, product, 1, true, along.scalar_type());
    along.div_(static_cast<double>(-s.r.n));
    at::addcmul_out(gx, gx, normal, along);
    gx.mul_(s.inverse);
  };
}

Body build_rms_norm_scale_grad(const NodeSpec& node, Frame& f) {
  RmsStatistics s(node, 1, f);
  at::Tensor normal = f.scratch({s.r.count, s.r.n}, f.in(1).scalar_type());
  return [s, normal, gy = s.r.view(f.in(0)), x = s.r.view(f.in(1)),
          gscale = f.out(0).view({s.r.n})](const Call&) mutable {
    if (x.numel() > 0) s.make(x);
    at::mul_out(normal, x, s.inverse);
    normal.mul_(gy);
    at::sum_out(gscale, normal, 0, false, gscale.scalar_type());
  };
}

}  // namespace

void add_norm_kernels(host::KernelTable& table) {
  add(table, "LayerNormalization", claim_wide, build_layer_norm);
  add(table, "gradrack.LayerNormalizationGrad", claim_layer_norm_grad, build_layer_norm_grad);
  add(table, "gradrack.LayerNormalizationScaleGrad", claim_wide, build_layer_norm_scale_grad);
  add(table, "RMSNormalization", claim_wide, build_rms_norm);
  add(table, "gradrack.RMSNormalizationGrad", claim_wide, build_rms_norm_grad);
  add(table, "gradrack.RMSNormalizationScaleGrad", claim_wide, build_rms_norm_scale_grad);
}

}  // namespace gradrack::libtorch
