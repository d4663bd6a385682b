// SPDX-License-Identifier: Apache-2.0
// Operator entries: ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, ReduceLogSumExp, ReduceProd,
// all by decomposition.
//
// Squares are summed in float64, so that no length overflows whose value fits. Products are taken
// by halves, so that their gradient divides by nothing and holds where an element is 0.
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/reduce_rules.hpp"

namespace gradrack {

Status add_reduce_norm_ops(OpRegistry& ops);

namespace {

/// The sum over the node's axes; x itself where there are none.
ValueId sum_of(Emitter& e, const Reduction& r, ValueId x) {
  return e.reduce_sum(x, r.axes, r.keepdims);
}

void l1_decompose(DecomposeContext& d) {
  const Reduction r = reduction_of(d);
  d.set_output(0, sum_of(d.e(), r, d.e().op("Abs", {r.x})));
}

ValueId sum_of_squares(Emitter& e, const Reduction& r, gr_dtype_t dtype) {
  const ValueId wide = e.cast(r.x, dtype);
  return sum_of(e, r, e.mul(wide, wide));
}

void sum_square_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  d.set_output(0, sum_of_squares(e, r, e.type(r.x).dtype));
}

void l2_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  const ValueId length = e.op("Sqrt", {sum_of_squares(e, r, GR_FLOAT64)});
  d.set_output(0, e.cast(length, e.type(r.x).dtype));
}

/// gy x / y; 0 where the length is 0.
void l2_grad(GradContext& g) {
  if (!g.needs(0)) return;
  Emitter& e = g.e();
  const Reduction r = reduction_of(g);
  const ValueId y = with_dims(e, r, g.output(0)), gy = with_dims(e, r, g.grad_output(0));
  const ValueId flat = e.op("Equal", {y, e.like(y, 0.0)});
  const ValueId share = e.where(flat, e.like(y, 0.0), e.div(gy, e.where(flat, e.like(y, 1.0), y)));
  g.set_grad(0, e.mul(r.x, share));
}

void log_sum_decompose(DecomposeContext& d) {
  const Reduction r = reduction_of(d);
  d.set_output(0, d.e().op("Log", {sum_of(d.e(), r, r.x)}));
}

/// The maximum is taken off first, but for an infinite one.
void log_sum_exp_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  if (r.axes.empty()) return d.set_output(0, e.op("Log", {e.op("Exp", {r.x})}));
  const ValueId most = e.reduce_max(r.x, r.axes, true);
  const ValueId finite = e.op("Not", {e.op("IsNaN", {e.sub(most, most)})});
  const ValueId off = e.where(finite, most, e.like(most, 0.0));
  const ValueId sum = e.reduce_sum(e.op("Exp", {e.sub(r.x, off)}), r.axes, true);
  const ValueId y = e.add(e.op("Log", {sum}), off);
  d.set_output(0, r.keepdims ? y : e.squeeze(y, r.axes));
}

void log_sum_exp_grad(GradContext& g) {
  if (!g.needs(0)) return;
  Emitter& e = g.e();
  const Reduction r = reduction_of(g);
  const ValueId share = e.op("Exp", {e.sub(r.x, with_dims(e, r, g.output(0)))});
  g.set_grad(0, e.mul(share, with_dims(e, r, g.grad_output(0))));
}

/// x with `axis` multiplied up to 1, halving it each time.
ValueId product_along(Emitter& e, ValueId x, int64_t axis) {
  const Dim size = e.shape(x)[static_cast<size_t>(axis)];
  if (!size.is_number()) {
    e.fail(unsupported("a product over the symbolic axis " + size.text() +
                       " is not supported: give the dim a number"));
    return x;
  }
  int64_t n = size.number();
  if (n == 0) {  // a sum over nothing has the shape, 1 added is the value
    return e.add(e.reduce_sum(x, {axis}, true), e.like(x, 1.0));
  }
  while (n > 1 && e.status().ok()) {
    const int64_t half = n / 2;
    ValueId y = e.mul(slice_axis(e, x, axis, 0, half), slice_axis(e, x, axis, half, 2 * half));
    if (n % 2 != 0) {
      y = e.op("Concat", {y, slice_axis(e, x, axis, n - 1, n)}, {{"axis", axis}});
    }
    x = y;
    n = half + n % 2;
  }
  return x;
}

void product_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const Reduction r = reduction_of(d);
  ValueId y = r.x;
  for (const int64_t axis : r.axes) {
    if (e.status().ok()) y = product_along(e, y, axis);
  }
  if (!r.keepdims) y = e.squeeze(y, r.axes);
  d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
}

/// A product of known sizes stays known.
OpDef product_op() {
  OpDef op = reduction("ReduceProd", Dtypes::kNumber,
                       "Product over axes, taken by halves; 1 over no elements.", nullptr);
  const auto infer = op.infer;
  op.infer = [infer](InferContext& c) -> Status {
    GR_TRY(infer(c));
    const bool noop = c.attrs().get_int("noop_with_empty_axes") != 0 && !c.has_input(1);
    if (c.known(0) == nullptr || c.input(0).shape.size() != 1 || noop) return {};
    Dim product(1);
    for (const Dim& each : *c.known(0)) product = product * each;
    c.set_known(0, {product});
    return {};
  };
  op.decompose = product_decompose;
  return op;
}

OpDef made_of(OpDef op, void (*decompose)(DecomposeContext&)) {
  op.decompose = decompose;
  return op;
}

}  // namespace

Status add_reduce_norm_ops(OpRegistry& ops) {
  const Dtypes real = Dtypes::kReal, number = Dtypes::kNumber;
  GR_TRY(ops.add(made_of(
      reduction("ReduceL1", number, "Sum of |x| over axes; 0 over none.", nullptr), l1_decompose)));
  GR_TRY(ops.add(made_of(reduction("ReduceL2", real,
                                   "Square root of the sum of x^2 over axes, in float64; its "
                                   "gradient at 0 is 0.",
                                   l2_grad),
                         l2_decompose)));
  GR_TRY(ops.add(made_of(reduction("ReduceSumSquare", number, "Sum of x^2 over axes.", nullptr),
                         sum_square_decompose)));
  GR_TRY(ops.add(made_of(reduction("ReduceLogSum", real, "ln of the sum over axes.", nullptr),
                         log_sum_decompose)));
  GR_TRY(ops.add(
      made_of(reduction("ReduceLogSumExp", real,
                        "ln of the sum of e^x over axes, with the largest x taken off before e^x.",
                        log_sum_exp_grad),
              log_sum_exp_decompose)));
  return ops.add(product_op());
}

}  // namespace gradrack
