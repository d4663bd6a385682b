// SPDX-License-Identifier: Apache-2.0
// Operator entries that reduce along axes: ReduceSum, ReduceMax, ReduceMin, ReduceMean, ArgMax.
//
// Axes are an input that is known while building (opset 18). Without axes everything is reduced, or
// nothing when noop_with_empty_axes is 1. A sum over nothing is 0, a mean NaN, a maximum -inf.
#include <algorithm>
#include <numeric>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

/// The axes to reduce from what the node was given, ascending.
Result<std::vector<int64_t>> reduced_axes(std::vector<int64_t> axes, bool keep_empty, size_t rank) {
  if (axes.empty() && !keep_empty) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  GR_ASSIGN(axes, normalize_axes(axes, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

Shape reduced_shape(const Shape& from, const std::vector<int64_t>& axes, bool keepdims) {
  Shape shape;
  for (size_t k = 0; k < from.size(); ++k) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k));
    if (!gone) shape.push_back(from[k]);
    if (gone && keepdims) shape.push_back(Dim(1));
  }
  return shape;
}

Status infer_reduce(InferContext& c, Dtypes set) {
  GR_TRY(want_dtype(c, 0, set));
  std::vector<int64_t> axes;
  if (c.has_input(1)) {
    GR_ASSIGN(axes, known_numbers(c, 1, "axes"));
  }
  const Shape& from = c.input(0).shape;
  GR_ASSIGN(axes, reduced_axes(axes, c.attrs().get_int("noop_with_empty_axes") != 0, from.size()));
  const bool keepdims = c.attrs().get_int("keepdims") != 0;
  c.set_output(0, {c.input(0).dtype, reduced_shape(from, axes, keepdims)});
  return {};
}

/// What gradient rules and decompositions ask of a reduction node.
struct Reduction {
  ValueId x = GR_NO_VALUE;
  std::vector<int64_t> axes;
  bool keepdims = true;
};

template <typename Context>
Reduction reduction_of(Context& context) {
  Emitter& e = context.e();
  const bool given = context.input_count() > 1;
  const auto axes =
      reduced_axes(given ? numbers_of(e, context.input(1)) : std::vector<int64_t>(),
                   context.attrs().get_int("noop_with_empty_axes") != 0, e.rank(context.input(0)));
  if (!axes.ok()) e.fail(axes.status());
  return {context.input(0), axes.ok() ? *axes : std::vector<int64_t>(),
          context.attrs().get_int("keepdims") != 0};
}

/// y with the reduced dims as 1, whether or not the node kept them.
ValueId with_dims(Emitter& e, const Reduction& r, ValueId y) {
  return r.keepdims ? y : e.unsqueeze(y, r.axes);
}

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

OpDef reduction(std::string name, Dtypes set, std::string doc, void (*grad)(GradContext&)) {
  OpDef op = define(std::move(name), "data, axes?", "reduced", std::move(doc));
  op.attrs = {attr("keepdims", int64_t{1}), attr("noop_with_empty_axes", int64_t{0})};
  op.infer = [set](InferContext& c) { return infer_reduce(c, set); };
  op.grad = grad;
  return op;
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
  d.set_output(0, e.neg(e.reduce_max(e.neg(r.x), r.axes, r.keepdims)));
}

OpDef arg_max_op() {
  OpDef op = define("ArgMax", "data", "reduced",
                    "Index of the largest element along `axis`, the first of equal ones unless "
                    "select_last_index is 1. A NaN counts as largest.");
  op.attrs = {attr("axis", int64_t{0}), attr("keepdims", int64_t{1}),
              attr("select_last_index", int64_t{0})};
  op.primitive = true;
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kNumber));
    const Shape& from = c.input(0).shape;
    GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), from.size()));
    if (from[static_cast<size_t>(axis)] == Dim(0)) {
      return invalid_argument("there is no largest of 0 elements");
    }
    c.set_output(0, {GR_INT64, reduced_shape(from, {axis}, c.attrs().get_int("keepdims") != 0)});
    return {};
  };
  return op;
}

}  // namespace

Status add_reduce_ops(OpRegistry& ops) {
  OpDef op =
      reduction("ReduceSum", Dtypes::kNumber,
                "Sum over axes, accumulated wider than float32; 0 over no elements.", sum_grad);
  op.primitive = true;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMax", Dtypes::kNumber,
                 "Largest element over axes, NaN if one is NaN, -inf (or the lowest integer) over "
                 "none. Equal ones share the gradient evenly.",
                 extreme_grad);
  op.primitive = true;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMin", Dtypes::kReal,
                 "Smallest element over axes, NaN if one is NaN, inf over none. Equal ones share "
                 "the gradient evenly.",
                 extreme_grad);
  op.decompose = min_decompose;
  GR_TRY(ops.add(std::move(op)));
  op = reduction("ReduceMean", Dtypes::kReal,
                 "Sum over axes divided by the number of elements; NaN over none.", mean_grad);
  op.decompose = mean_decompose;
  GR_TRY(ops.add(std::move(op)));
  return ops.add(arg_max_op());
}

}  // namespace gradrack
