// SPDX-License-Identifier: Apache-2.0
// Operator entries that reduce along axes: ReduceSum, ReduceMax, ReduceMin, ReduceMean, ArgMax,
// ArgMin. Norms, logarithms of sums and products are in reduce_norms.cpp.
//
// Axes are an input that is known while building (opset 18). Without axes everything is reduced, or
// nothing when noop_with_empty_axes is 1. A sum over nothing is 0, a mean NaN, a maximum -inf.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/reduce_rules.hpp"

namespace gradrack {

Status add_reduce_norm_ops(OpRegistry& ops);  // reduce_norms.cpp

namespace {

/// Elements that one output sums over, as a scalar of x's dtype.
ValueId element_count_of(Emitter& e, const Reduction& r) {
  double number = 1;
  ValueId symbols = GR_NO_VALUE;
  for (const int64_t axis : r.axes) {
    const ValueId dim = dim_of(e, r.x, axis);
    const std::vector<int64_t> known = numbers_of(e, dim);
    if (known.size() == 1) {
      number *= static_cast<double>(known[0]);
    } else {
      symbols = symbols == GR_NO_VALUE ? dim : e.mul(symbols, dim);
    }
  }
  const ValueId fixed = e.like(r.x, number);
  if (symbols == GR_NO_VALUE) return fixed;
  return e.mul(e.cast(e.squeeze(symbols, {0}), e.type(r.x).dtype), fixed);
}

void sum_grad(GradContext& g) {
  if (!g.needs(0)) return;
  const Reduction r = reduction_of(g);
  g.set_grad(0, g.e().expand_like(with_dims(g.e(), r, g.grad_output(0)), r.x));
}

void mean_grad(GradContext& g) {
  if (!g.needs(0)) return;
  Emitter& e = g.e();
  const Reduction r = reduction_of(g);
  const ValueId share = e.div(g.grad_output(0), element_count_of(e, r));
  g.set_grad(0, e.expand_like(with_dims(e, r, share), r.x));
}

void extreme_grad(GradContext& g) {
  if (!g.needs(0)) return;
  Emitter& e = g.e();
  const Reduction r = reduction_of(g);
  const ValueId hit = e.op("Equal", {r.x, with_dims(e, r, g.output(0))});
  const ValueId ones = e.cast(hit, e.type(r.x).dtype);
  const ValueId ties = e.reduce_sum(ones, r.axes, true);
  const ValueId share = e.div(with_dims(e, r, g.grad_output(0)), ties);
  g.set_grad(0, e.mul(ones, share));
}

void mean_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  const ValueId sum = r.axes.empty() ? r.x : e.reduce_sum(r.x, r.axes, r.keepdims);
  d.set_output(0, e.div(sum, element_count_of(e, r)));
}

void min_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  d.set_output(0, mirrored(e, e.reduce_max(mirrored(e, r.x), r.axes, r.keepdims)));
}

OpDef arg_op(const char* name, std::string doc) {
  OpDef op = define(name, "data", "reduced", std::move(doc));
  op.attrs = {attr("axis", int64_t{0}), attr("keepdims", int64_t{1}),
              attr("select_last_index", int64_t{0})};
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kNumber));
    const Shape& from = c.input(0).shape;
    GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), from.size()));
    if (from[static_cast<size_t>(axis)] == Dim(0)) {
      return invalid_argument("there is no largest or smallest of 0 elements");
    }
    c.set_output(0, {GR_INT64, reduced_shape(from, {axis}, c.attrs().get_int("keepdims") != 0)});
    return {};
  };
  return op;
}

Status add_arg_ops(OpRegistry& ops) {
  OpDef op = arg_op("ArgMax",
                    "Index of the largest element along `axis`, the first of equal ones unless "
                    "select_last_index is 1. A NaN counts as largest.");
  op.primitive = true;
  GR_TRY(ops.add(std::move(op)));
  op = arg_op("ArgMin",
              "Index of the smallest element along `axis`, the first of equal ones unless "
              "select_last_index is 1. A NaN counts as smallest.");
  op.decompose = [](DecomposeContext& d) {
    d.set_output(0, d.e().op("ArgMax", {mirrored(d.e(), d.input(0))}, d.attrs()));
  };
  return ops.add(std::move(op));
}

}  // namespace

Status add_reduce_ops(OpRegistry& ops) {
  OpDef op =
      reduction("ReduceSum", Dtypes::kNumber,
                "Sum over axes, accumulated wider than float32; 0 over no elements.", sum_grad);
  op.primitive = true;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMax", Dtypes::kAny,
                 "Largest element over axes, NaN if one is NaN, -inf (or the lowest integer) over "
                 "none. Equal ones share the gradient evenly.",
                 extreme_grad);
  op.primitive = true;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMin", Dtypes::kAny,
                 "Smallest element over axes, NaN if one is NaN, inf (or the largest integer) over "
                 "none. Equal ones share the gradient evenly.",
                 extreme_grad);
  op.decompose = min_decompose;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMean", Dtypes::kReal,
                 "Sum over axes divided by the number of elements; NaN over none.", mean_grad);
  op.decompose = mean_decompose;
  GR_TRY(ops.add(std::move(op)));
  GR_TRY(add_arg_ops(ops));
  return add_reduce_norm_ops(ops);
}

}  // namespace gradrack
