// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce along axes: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ArgMax; and
// gradrack.SumSquares, gradrack.CountTargets.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sum.h>

#include <limits>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// The axes that are reduced, in order; with no list all, or none.
Dims reduced_axes(const NodeSpec& node) {
  const auto rank = static_cast<int64_t>(node.inputs[0].rank());
  std::vector<int64_t> axes;
  node.known_ints(1, &axes);
  for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  const bool all = axes.empty() && node.get_int("noop_with_empty_axes") == 0;
  for (int64_t k = 0; all && k < rank; ++k) axes.push_back(k);
  return axes;
}

using Reduce = void (*)(at::Tensor& y, const at::Tensor& x, const Dims& axes, bool keep);

void add_reduction(host::KernelTable& table, const char* op, Reduce reduce, Claim claim,
                   double of_none) {
  const auto checked = [claim = std::move(claim)](const NodeSpec& node) {
    const std::string reason = refuse_unknown_ints(node, 1);
    return reason.empty() ? claim(node) : reason;
  };
  const auto build = [reduce, of_none](const NodeSpec& node, Frame& f) -> Body {
    at::Tensor x = f.in(0), y = f.out(0);
    const Dims axes = reduced_axes(node);
    if (x.numel() == 0) return [y, of_none](const Call&) mutable { y.fill_(of_none); };
    if (axes.empty()) return [x, y = y.view(x.sizes())](const Call&) mutable { y.copy_(x); };
    const bool keep = node.get_int("keepdims", 1) != 0;
    return [=](const Call&) mutable { reduce(y, x, axes, keep); };
  };
  add(table, op, checked, build);
}

void sum(at::Tensor& y, const at::Tensor& x, const Dims& axes, bool keep) {
  at::sum_out(y, x, sizes(axes), keep, y.scalar_type());
}
void mean(at::Tensor& y, const at::Tensor& x, const Dims& axes, bool keep) {
  at::mean_out(y, x, sizes(axes), keep);
}
void largest(at::Tensor& y, const at::Tensor& x, const Dims& axes, bool keep) {
  at::amax_out(y, x, sizes(axes), keep);
}
void smallest(at::Tensor& y, const at::Tensor& x, const Dims& axes, bool keep) {
  at::amin_out(y, x, sizes(axes), keep);
}

/// Integers have no infinity to give for a maximum of none.
std::string claim_extreme(const NodeSpec& node) {
  if (is_real(node.inputs[0].dtype)) return {};
  if (node.inputs[0].count == 0) return "the extreme of no integers";
  return claim_numbers(node);
}

std::string claim_arg_max(const NodeSpec& node) {
  if (node.get_int("select_last_index") != 0) return "ATen gives the first of equal ones";
  if (node.inputs[0].count == 0) return "no elements";
  return claim_numbers(node);
}

Body build_arg_max(const NodeSpec& node, Frame& f) {
  const auto axis = static_cast<int64_t>(node.get_axis("axis", node.inputs[0].rank()));
  const bool keep = node.get_int("keepdims", 1) != 0;
  return [x = f.in(0), y = f.out(0), axis, keep](const Call&) mutable {
    at::argmax_out(y, x, axis, keep);
  };
}

/// In float64: the square of the norm, which ATen has in one pass.
Body build_sum_squares(const NodeSpec&, Frame& f) {
  return [x = f.in(0).view({-1}), y = f.out(0)](const Call&) mutable {
    at::linalg_vector_norm_out(y, x, 2, at::OptionalIntArrayRef(), false, at::kDouble);
    at::mul_out(y, y, y);
  };
}

Body build_count_targets(const NodeSpec& node, Frame& f) {
  at::Tensor y = f.out(0);
  if (!node.has("ignore_index")) {
    return [y, count = node.inputs[0].count](const Call&) mutable { y.fill_(count); };
  }
  at::Tensor counted = f.scratch({node.inputs[0].count}, at::kBool);
  at::Tensor count = f.scratch({}, at::kLong);
  return
      [=, labels = f.in(0).view({-1}), ignore = node.get_int("ignore_index")](const Call&) mutable {
        at::ne_out(counted, labels, ignore);
        at::sum_out(count, counted, at::OptionalIntArrayRef(), false, at::kLong);
        y.copy_(count);
      };
}

}  // namespace

void add_reduce_kernels(host::KernelTable& table) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  add_reduction(table, "ReduceSum", sum, claim_numbers, 0.0);
  add_reduction(table, "ReduceMean", mean, claim_reals, std::numeric_limits<double>::quiet_NaN());
  add_reduction(table, "ReduceMax", largest, claim_extreme, -kInfinity);
  add_reduction(table, "ReduceMin", smallest, claim_extreme, kInfinity);
  add(table, "ArgMax", claim_arg_max, build_arg_max);
  add(
      table, "gradrack.SumSquares",
      [](const NodeSpec& node) {
        return is_real(node.inputs[0].dtype) ? std::string() : "input 0 is an integer";
      },
      build_sum_squares);
  add(table, "gradrack.CountTargets", claim_any, build_count_targets);
}

}  // namespace gradrack::libtorch
