// SPDX-License-Identifier: Apache-2.0
// Operator entries: Tan, Sinh, Cosh and the inverses of circular and hyperbolic functions, by
// decomposition into Sin, Cos, Atan, Exp and Log.
//
// Formulas are chosen so that nothing cancels near 0 or at the ends of a range; logarithms are
// taken in float64, where 1 + x keeps the digits of a small x.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

ValueId root(Emitter& e, ValueId x) { return e.op("Sqrt", {x}); }
ValueId log_of(Emitter& e, ValueId x) { return e.op("Log", {x}); }
/// (1 - x)(1 + x)
ValueId one_less_square(Emitter& e, ValueId x) { return e.mul(e.sub(1.0, x), e.add(x, 1.0)); }
/// x^2 - 1 as (x - 1)(x + 1)
ValueId square_less_one(Emitter& e, ValueId x) { return e.mul(e.add(x, -1.0), e.add(x, 1.0)); }

ValueId tangent(Emitter& e, const Attrs&, ValueId x) {
  return e.div(e.op("Sin", {x}), e.op("Cos", {x}));
}
ValueId cosh_of(Emitter& e, const Attrs&, ValueId x) {
  return e.mul(e.add(e.op("Exp", {x}), e.op("Exp", {e.neg(x)})), 0.5);
}
ValueId sinh_of(Emitter& e, const Attrs& attrs, ValueId x) {
  return e.mul(e.op("Tanh", {x}), cosh_of(e, attrs, x));
}
ValueId asin_of(Emitter& e, const Attrs&, ValueId x) {
  const ValueId ratio = e.div(x, e.add(root(e, one_less_square(e, x)), 1.0));
  return e.mul(e.op("Atan", {ratio}), 2.0);
}
ValueId acos_of(Emitter& e, const Attrs&, ValueId x) {
  return e.mul(e.op("Atan", {root(e, e.div(e.sub(1.0, x), e.add(x, 1.0)))}), 2.0);
}

/// `formula` of x in float64.
ValueId in_double(Emitter& e, ValueId x, ValueId (*formula)(Emitter& e, ValueId wide)) {
  return e.cast(formula(e, e.cast(x, GR_FLOAT64)), e.type(x).dtype);
}
ValueId asinh_of(Emitter& e, const Attrs&, ValueId x) {
  return in_double(e, x, [](Emitter& emit, ValueId w) {
    const ValueId size = emit.op("Abs", {w});
    const ValueId far = root(emit, emit.add(emit.mul(w, w), 1.0));
    return emit.mul(emit.op("Sign", {w}), log_of(emit, emit.add(size, far)));
  });
}
ValueId acosh_of(Emitter& e, const Attrs&, ValueId x) {
  return in_double(e, x, [](Emitter& emit, ValueId w) {
    return log_of(emit, emit.add(w, root(emit, square_less_one(emit, w))));
  });
}
ValueId atanh_of(Emitter& e, const Attrs&, ValueId x) {
  return in_double(e, x, [](Emitter& emit, ValueId w) {
    return emit.mul(log_of(emit, emit.div(emit.add(w, 1.0), emit.sub(1.0, w))), 0.5);
  });
}

using Slope = ValueId (*)(Emitter& e, ValueId x);  // 1 / dy/dx

/// An inverse whose gradient is gy / slope(x).
OpDef inverse(std::string name, std::string doc, Formula formula, Slope slope) {
  OpDef op = formula_op(std::move(name), std::move(doc), {}, formula, Dtypes::kReal);
  op.grad = [slope](GradContext& g) {
    if (g.needs(0)) g.set_grad(0, g.e().div(g.grad_output(0), slope(g.e(), g.input(0))));
  };
  return op;
}

Status add_inverses(OpRegistry& ops) {
  GR_TRY(
      ops.add(inverse("Asin", "The angle in [-pi/2, pi/2] whose sine is X; NaN beyond 1.", asin_of,
                      [](Emitter& e, ValueId x) { return root(e, one_less_square(e, x)); })));
  GR_TRY(ops.add(
      inverse("Acos", "The angle in [0, pi] whose cosine is X; NaN beyond 1.", acos_of,
              [](Emitter& e, ValueId x) { return e.neg(root(e, one_less_square(e, x))); })));
  GR_TRY(ops.add(inverse("Asinh", "The number whose hyperbolic sine is X.", asinh_of,
                         [](Emitter& e, ValueId x) { return root(e, e.add(e.mul(x, x), 1.0)); })));
  GR_TRY(ops.add(
      inverse("Acosh", "The number not below 0 whose hyperbolic cosine is X; NaN below 1.",
              acosh_of, [](Emitter& e, ValueId x) { return root(e, square_less_one(e, x)); })));
  return ops.add(inverse("Atanh", "The number whose hyperbolic tangent is X; NaN beyond 1.",
                         atanh_of, one_less_square));
}

}  // namespace

Status add_trigonometry_ops(OpRegistry& ops) {
  const Dtypes real = Dtypes::kReal;
  GR_TRY(ops.add(formula_op("Tan", "Y = sin(X) / cos(X).", {}, tangent, real)));
  GR_TRY(ops.add(formula_op("Cosh", "Y = (e^X + e^-X) / 2.", {}, cosh_of, real)));
  GR_TRY(ops.add(
      formula_op("Sinh", "Y = (e^X - e^-X) / 2, computed as tanh(X) cosh(X).", {}, sinh_of, real)));
  return add_inverses(ops);
}

}  // namespace gradrack
