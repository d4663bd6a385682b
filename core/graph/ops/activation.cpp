// SPDX-License-Identifier: Apache-2.0
// Operator entries with one tensor input that are made of several primitives: Gelu, Swish,
// Softplus, LeakyRelu, Reciprocal, Clip and the gradients that deserve a kernel of their own.
//
// Part of the unary family. Invariant: each has a decomposition, so a backend may know none of
// them, and a gradient rule that does not go through it.
#include <cmath>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

Status add_activation_ops(OpRegistry& ops);

namespace {

const double kPi = std::acos(-1.0);
const double kGeluCubic = 0.044715;  // of the tanh form

using GradFormula = ValueId (*)(Emitter& e, const Attrs& attrs, ValueId gy, ValueId x, ValueId y);

OpDef composite(std::string name, std::string doc, Formula formula, GradFormula rule) {
  OpDef op = formula_op(std::move(name), std::move(doc), {}, formula, Dtypes::kReal);
  op.grad = [rule](GradContext& g) {
    if (!g.needs(0)) return;
    g.set_grad(0, rule(g.e(), g.attrs(), g.grad_output(0), g.input(0), g.output(0)));
  };
  return op;
}

/// gradrack.<name>(gy, X): the gradient of an activation as one node, times gy.
OpDef slope_op(std::string name, std::string doc, Formula slope) {
  OpDef op = define_own(std::move(name), "gy, X", "gx", std::move(doc));
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_same_dtype(c, Dtypes::kReal));
    if (!(c.input(0).shape == c.input(1).shape)) {
      return invalid_argument("gy and X must have one shape");
    }
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = [slope](DecomposeContext& d) {
    d.set_output(0, d.e().mul(d.input(0), slope(d.e(), d.attrs(), d.input(1))));
  };
  return op;
}

bool is_tanh(const Attrs& attrs) { return attrs.get_string("approximate") == "tanh"; }

Status check_approximate(InferContext& c) {
  const std::string how = c.attrs().get_string("approximate");
  if (how == "none" || how == "tanh") return {};
  return invalid_argument("attribute 'approximate' must be 'none' or 'tanh', got '" + how + "'");
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3))
ValueId gelu_tanh(Emitter& e, ValueId x) {
  const ValueId cube = e.mul(e.mul(e.mul(x, x), x), kGeluCubic);
  return e.op("Tanh", {e.mul(e.add(x, cube), std::sqrt(2.0 / kPi))});
}

ValueId gelu(Emitter& e, const Attrs& attrs, ValueId x) {
  const ValueId bump = is_tanh(attrs) ? gelu_tanh(e, x) : e.op("Erf", {e.mul(x, std::sqrt(0.5))});
  return e.mul(e.mul(x, 0.5), e.add(bump, 1.0));
}

ValueId gelu_slope(Emitter& e, const Attrs& attrs, ValueId x) {
  const ValueId square = e.mul(x, x);
  if (!is_tanh(attrs)) {
    const ValueId cdf = e.mul(e.add(e.op("Erf", {e.mul(x, std::sqrt(0.5))}), 1.0), 0.5);
    const ValueId pdf = e.mul(e.op("Exp", {e.mul(square, -0.5)}), 1.0 / std::sqrt(2.0 * kPi));
    return e.add(cdf, e.mul(x, pdf));
  }
  const ValueId t = gelu_tanh(e, x);
  const ValueId inner = e.mul(e.add(e.mul(square, 3.0 * kGeluCubic), 1.0), std::sqrt(2.0 / kPi));
  const ValueId side = e.mul(e.mul(x, 0.5), e.mul(e.sub(1.0, e.mul(t, t)), inner));
  return e.add(e.mul(e.add(t, 1.0), 0.5), side);
}

ValueId swish_gate(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.op("Sigmoid", {e.mul(x, attrs.get_float("alpha"))});
}

ValueId swish(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.mul(x, swish_gate(e, attrs, x));
}

ValueId swish_slope(Emitter& e, const Attrs& attrs, ValueId x) {
  const ValueId s = swish_gate(e, attrs, x);
  const ValueId bend = e.mul(e.mul(x, attrs.get_float("alpha")), e.sub(1.0, s));
  return e.mul(s, e.add(bend, 1.0));
}

Status add_gelu_and_swish(OpRegistry& ops) {
  OpDef op = composite("Gelu",
                       "Y = X/2 (1 + erf(X/sqrt(2))); with approximate=tanh "
                       "Y = X/2 (1 + tanh(sqrt(2/pi) (X + 0.044715 X^3))).",
                       gelu, [](Emitter& e, const Attrs& attrs, ValueId gy, ValueId x, ValueId) {
                         return e.own("GeluGrad", {gy, x}, attrs);
                       });
  op.attrs = {attr("approximate", std::string("none"))};
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(check_approximate(c));
    return infer_like_first(c, Dtypes::kReal);
  };
  GR_TRY(ops.add(op));
  OpDef grad = slope_op("GeluGrad", "gx = gy Gelu'(X), with Gelu's attributes.", gelu_slope);
  grad.attrs = op.attrs;
  GR_TRY(ops.add(std::move(grad)));

  op = composite("Swish", "Y = X sigmoid(alpha X); SiLU when alpha is 1.", swish,
                 [](Emitter& e, const Attrs& attrs, ValueId gy, ValueId x, ValueId) {
                   return e.own("SwishGrad", {gy, x}, attrs);
                 });
  op.attrs = {attr("alpha", 1.0)};
  grad = slope_op("SwishGrad", "gx = gy s (1 + alpha X (1 - s)) with s = sigmoid(alpha X).",
                  swish_slope);
  grad.attrs = op.attrs;
  GR_TRY(ops.add(std::move(op)));
  return ops.add(std::move(grad));
}

Status add_simple(OpRegistry& ops) {
  GR_TRY(ops.add(composite(
      "Softplus",
      "Y = ln(1 + e^X), computed as max(X, 0) + ln(1 + e^-|X|) so that it never "
      "overflows.",
      [](Emitter& e, const Attrs&, ValueId x) {
        const ValueId tail = e.add(e.op("Exp", {e.neg(e.op("Abs", {x}))}), 1.0);
        return e.add(e.op("Relu", {x}), e.op("Log", {tail}));
      },
      [](Emitter& e, const Attrs&, ValueId gy, ValueId x, ValueId) {
        return e.mul(gy, e.op("Sigmoid", {x}));
      })));
  GR_TRY(ops.add(composite(
      "Reciprocal", "Y = 1 / X.", [](Emitter& e, const Attrs&, ValueId x) { return e.div(1.0, x); },
      [](Emitter& e, const Attrs&, ValueId gy, ValueId, ValueId y) {
        return e.neg(e.mul(gy, e.mul(y, y)));
      })));
  OpDef leaky = composite(
      "LeakyRelu", "Y = X where X > 0, else alpha X; the slope at 0 is alpha.",
      [](Emitter& e, const Attrs& attrs, ValueId x) {
        const ValueId on = e.op("Greater", {x, e.like(x, 0.0)});
        return e.where(on, x, e.mul(x, attrs.get_float("alpha")));
      },
      [](Emitter& e, const Attrs& attrs, ValueId gy, ValueId x, ValueId) {
        const ValueId on = e.op("Greater", {x, e.like(x, 0.0)});
        return e.where(on, gy, e.mul(gy, attrs.get_float("alpha")));
      });
  leaky.attrs = {attr("alpha", 0.01)};
  return ops.add(std::move(leaky));
}

ValueId both(Emitter& e, ValueId a, ValueId b) {
  if (a == GR_NO_VALUE) return b;
  return b == GR_NO_VALUE ? a : e.op("And", {a, b});
}

ValueId masked(Emitter& e, ValueId mask, ValueId gy) {
  return mask == GR_NO_VALUE ? gy : e.where(mask, gy, e.like(gy, 0.0));
}

void clip_grad(GradContext& g) {
  Emitter& e = g.e();
  const ValueId x = g.input(0);
  const ValueId gy = g.grad_output(0);
  const ValueId low = g.input_count() > 1 ? g.input(1) : GR_NO_VALUE;
  const ValueId high = g.input_count() > 2 ? g.input(2) : GR_NO_VALUE;
  const bool has_low = low != GR_NO_VALUE, has_high = high != GR_NO_VALUE;
  if (g.needs(0)) {
    const ValueId above = has_low ? e.op("GreaterOrEqual", {x, low}) : GR_NO_VALUE;
    const ValueId below = has_high ? e.op("LessOrEqual", {x, high}) : GR_NO_VALUE;
    g.set_grad(0, masked(e, both(e, above, below), gy));
  }
  if (has_low && g.needs(1)) {
    const ValueId fits = has_high ? e.op("LessOrEqual", {low, high}) : GR_NO_VALUE;
    g.set_grad(1, e.sum_to(masked(e, both(e, e.op("Less", {x, low}), fits), gy), low));
  }
  if (has_high && g.needs(2)) {
    const ValueId raised = has_low ? e.op("Max", {x, low}) : x;
    g.set_grad(2, e.sum_to(masked(e, e.op("Greater", {raised, high}), gy), high));
  }
}

OpDef clip_op() {
  OpDef op = define("Clip", "input, min?, max?", "output",
                    "Y = min(max(X, min), max) with scalar limits; max wins when min > max. The "
                    "gradient goes to X where it lies within the limits, both included.");
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_same_dtype(c, Dtypes::kNumber));
    for (size_t k = 1; k < c.input_count(); ++k) {
      if (c.has_input(k)) GR_TRY(want_rank(c, k, 0));
    }
    return infer_like_first(c, Dtypes::kNumber);
  };
  op.decompose = [](DecomposeContext& d) {
    ValueId y = d.input(0);
    if (d.input_count() > 1 && d.input(1) != GR_NO_VALUE) y = d.e().op("Max", {y, d.input(1)});
    if (d.input_count() > 2 && d.input(2) != GR_NO_VALUE) y = d.e().op("Min", {y, d.input(2)});
    if (y == d.input(0)) y = d.e().op("Identity", {y});
    d.set_output(0, y);
  };
  op.grad = clip_grad;
  return op;
}

}  // namespace

Status add_activation_ops(OpRegistry& ops) {
  GR_TRY(add_gelu_and_swish(ops));
  GR_TRY(add_simple(ops));
  return ops.add(clip_op());
}

}  // namespace gradrack
