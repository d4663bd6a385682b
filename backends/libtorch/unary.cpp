// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one input: from Neg to Sigmoid, Not, IsNaN.
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

using OutFunction = at::Tensor& (*)(at::Tensor& out, const at::Tensor& x);

void add_map(host::KernelTable& table, const char* op, OutFunction function,
             Claim claim = claim_reals) {
  const auto build = [function](const NodeSpec&, Frame& f) -> Body {
    return [function, x = f.in(0), y = f.out(0)](const Call&) mutable { function(y, x); };
  };
  add(table, op, std::move(claim), build, {{0}});
}

at::Tensor& relu(at::Tensor& out, const at::Tensor& x) { return at::clamp_min_out(out, x, 0); }

/// The linear part begins where e^-x is below a rounding step of float64.
at::Tensor& softplus(at::Tensor& out, const at::Tensor& x) {
  constexpr int kLinearFrom = 40;
  return at::softplus_out(out, x, 1, kLinearFrom);
}

at::Tensor& is_nan(at::Tensor& out, const at::Tensor& x) { return at::ne_out(out, x, x); }

/// ATen gives 0 for NaN.
Body build_sign(const NodeSpec& node, Frame& f) {
  if (!is_real(node.inputs[0].dtype)) {
    return [x = f.in(0), y = f.out(0)](const Call&) mutable { at::sign_out(y, x); };
  }
  at::Tensor nan = f.scratch(node.inputs[0].dims, at::kBool);
  at::Tensor sign = f.scratch(node.inputs[0].dims, f.in(0).scalar_type());
  return [x = f.in(0), y = f.out(0), nan, sign](const Call&) mutable {
    at::ne_out(nan, x, x);
    at::sign_out(sign, x);
    at::where_out(y, nan, x, sign);
  };
}

/// x - x is 0 for what is finite alone.
Body build_is_finite(const NodeSpec& node, Frame& f) {
  at::Tensor zero = f.scratch(node.inputs[0].dims, f.in(0).scalar_type());
  return [x = f.in(0), y = f.out(0), zero](const Call&) mutable {
    at::sub_out(zero, x, x);
    at::eq_out(y, zero, 0);
  };
}

}  // namespace

void add_unary_kernels(host::KernelTable& table) {
  add_map(table, "Neg", at::neg_out, claim_numbers);
  add_map(table, "Abs", at::abs_out, claim_numbers);
  add_map(table, "Relu", relu, claim_numbers);
  add_map(table, "Sqrt", at::sqrt_out);
  add_map(table, "Exp", at::exp_out);
  add_map(table, "Log", at::log_out);
  add_map(table, "Erf", at::erf_out);
  add_map(table, "Tanh", at::tanh_out);
  add_map(table, "Floor", at::floor_out);
  add_map(table, "Reciprocal", at::reciprocal_out);
  add_map(table, "Sigmoid", at::sigmoid_out);
  add_map(table, "Softplus", softplus);
  add_map(table, "Not", at::logical_not_out, claim_any);
  add_map(table, "IsNaN", is_nan, claim_reals);
  add(table, "Sign", claim_numbers, build_sign);
  add(table, "gradrack.IsFinite", claim_reals, build_is_finite);
}

}  // namespace gradrack::libtorch
