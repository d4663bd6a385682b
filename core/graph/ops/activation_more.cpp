// SPDX-License-Identifier: Apache-2.0
// Operator entries: the activations that models made elsewhere bring, by decomposition: Elu, Selu,
// Celu, HardSigmoid, HardSwish, Mish, Softsign, ThresholdedRelu, Shrink, PRelu, Hardmax.
//
// Formulas are ONNX's. Invariant: the branch that is not taken stays finite, so that no gradient
// becomes 0 * inf.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

ValueId positive(Emitter& e, ValueId x) { return e.op("Greater", {x, e.like(x, 0.0)}); }

/// e^(min(x, 0) / scale) - 1
ValueId below_zero(Emitter& e, ValueId x, double scale) {
  const ValueId low = e.op("Min", {x, e.like(x, 0.0)});
  return e.add(e.op("Exp", {e.mul(low, 1.0 / scale)}), -1.0);
}

ValueId elu(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.where(positive(e, x), x, e.mul(below_zero(e, x, 1.0), attrs.get_float("alpha")));
}

ValueId selu(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.mul(elu(e, attrs, x), attrs.get_float("gamma"));
}

ValueId celu(Emitter& e, const Attrs& attrs, ValueId x) {
  const double alpha = attrs.get_float("alpha");
  return e.where(positive(e, x), x, e.mul(below_zero(e, x, alpha), alpha));
}

ValueId clipped(Emitter& e, ValueId x) { return e.op("Clip", {x, e.like(x, 0.0), e.like(x, 1.0)}); }

ValueId hard_sigmoid(Emitter& e, const Attrs& attrs, ValueId x) {
  return clipped(e, e.add(e.mul(x, attrs.get_float("alpha")), attrs.get_float("beta")));
}

ValueId hard_swish(Emitter& e, const Attrs&, ValueId x) {
  return e.mul(x, clipped(e, e.add(e.mul(x, 1.0 / 6.0), 0.5)));
}

ValueId mish(Emitter& e, const Attrs&, ValueId x) {
  return e.mul(x, e.op("Tanh", {e.op("Softplus", {x})}));
}

ValueId softsign(Emitter& e, const Attrs&, ValueId x) {
  return e.div(x, e.add(e.op("Abs", {x}), 1.0));
}

ValueId thresholded_relu(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.where(e.op("Greater", {x, e.like(x, attrs.get_float("alpha"))}), x, e.like(x, 0.0));
}

ValueId shrink(Emitter& e, const Attrs& attrs, ValueId x) {
  const double edge = attrs.get_float("lambd"), bias = attrs.get_float("bias");
  const ValueId above = e.op("Greater", {x, e.like(x, edge)});
  const ValueId below = e.op("Less", {x, e.like(x, -edge)});
  const ValueId low = e.where(below, e.add(x, bias), e.like(x, 0.0));
  return e.where(above, e.add(x, -bias), low);
}

OpDef celu_op() {
  OpDef op = formula_op("Celu", "Y = X where X > 0, else alpha (e^(X / alpha) - 1).",
                        {attr("alpha", 1.0)}, celu, Dtypes::kReal);
  op.infer = [](InferContext& c) -> Status {
    if (c.attrs().get_float("alpha") == 0) return invalid_argument("alpha must not be 0");
    return infer_like_first(c, Dtypes::kReal);
  };
  return op;
}

OpDef prelu_op() {
  OpDef op =
      define("PRelu", "X, slope", "Y", "Y = X where X >= 0, else slope X; slope broadcasts to X.");
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_same_dtype(c, Dtypes::kNumber));
    GR_TRY(check_broadcasts_to(c.input(1).shape, c.input(0).shape, "slope"));
    return infer_like_first(c, Dtypes::kNumber);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const ValueId x = d.input(0);
    d.set_output(0, e.where(e.op("Less", {x, e.like(x, 0.0)}), e.mul(x, d.input(1)), x));
  };
  return op;
}

OpDef hardmax_op() {
  OpDef op = define("Hardmax", "input", "output",
                    "1 at the first maximum along one axis, else 0. Autodiff stops here.");
  op.attrs = {attr("axis", int64_t{-1})};
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(normalize_axis(c.attrs().get_int("axis"), c.input(0).shape.size()).status());
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const Attrs axis{{"axis", d.attrs().get_int("axis")}};
    const ValueId place = e.op("ArgMax", {d.input(0)}, axis);
    const ValueId ones = e.expand_like(e.like(d.input(0), 1.0), place);
    d.set_output(0, e.op("ScatterElements", {zeros_like(e, d.input(0)), place, ones}, axis));
  };
  return op;
}

}  // namespace

Status add_more_activation_ops(OpRegistry& ops) {
  const Dtypes real = Dtypes::kReal;
  GR_TRY(ops.add(formula_op("Elu", "Y = X where X > 0, else alpha (e^X - 1).", {attr("alpha", 1.0)},
                            elu, real)));
  GR_TRY(ops.add(formula_op(
      "Selu", "Y = gamma X where X > 0, else gamma alpha (e^X - 1).",
      {attr("alpha", 1.67326319217681884765625), attr("gamma", 1.05070102214813232421875)}, selu,
      real)));
  GR_TRY(ops.add(celu_op()));
  GR_TRY(ops.add(formula_op("HardSigmoid", "Y = max(0, min(1, alpha X + beta)).",
                            {attr("alpha", 0.2), attr("beta", 0.5)}, hard_sigmoid, real)));
  GR_TRY(
      ops.add(formula_op("HardSwish", "Y = X max(0, min(1, X / 6 + 1/2)).", {}, hard_swish, real)));
  GR_TRY(ops.add(formula_op("Mish", "Y = X tanh(ln(1 + e^X)).", {}, mish, real)));
  GR_TRY(ops.add(formula_op("Softsign", "Y = X / (1 + |X|).", {}, softsign, real)));
  GR_TRY(ops.add(formula_op("ThresholdedRelu", "Y = X where X > alpha, else 0.",
                            {attr("alpha", 1.0)}, thresholded_relu, real)));
  GR_TRY(ops.add(formula_op("Shrink",
                            "Y = X - bias where X > lambd, X + bias where X < -lambd, else 0.",
                            {attr("bias", 0.0), attr("lambd", 0.5)}, shrink, real)));
  GR_TRY(ops.add(prelu_op()));
  return ops.add(hardmax_op());
}

}  // namespace gradrack
