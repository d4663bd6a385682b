// SPDX-License-Identifier: Apache-2.0
// Operator entries with one tensor input, element by element, that are primitives.
//
// The activations made of several primitives are in activation.cpp. Gradients use the output where
// that saves work. Invariant: the output has the input's shape.
#include <cmath>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

Status add_activation_ops(OpRegistry& ops);  // activation.cpp

namespace {

using GradRule = ValueId (*)(Emitter& e, ValueId gy, ValueId x, ValueId y);

/// A primitive whose gradient is one formula of gy, x and y.
OpDef primitive(std::string name, Dtypes set, std::string doc, GradRule rule) {
  OpDef op = define(std::move(name), "X", "Y", std::move(doc));
  op.primitive = true;
  op.infer = [set](InferContext& c) { return infer_like_first(c, set); };
  if (rule == nullptr) {
    op.non_differentiable = true;
  } else {
    op.grad = [rule](GradContext& g) {
      if (!g.needs(0)) return;
      g.set_grad(0, rule(g.e(), g.grad_output(0), g.input(0), g.output(0)));
    };
  }
  return op;
}

OpDef cast_op() {
  OpDef op = define(
      "Cast", "input", "output",
      "Converts to dtype `to` (a gr_dtype_t number, where ONNX counts in its own). Floats become "
      "integers toward zero; what does not fit saturates, NaN becomes 0; to bool, all but 0 is "
      "true. `saturate` is accepted and changes nothing.");
  op.attrs = {required_attr("to", GR_ATTR_INT), attr("saturate", int64_t{1})};
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    const auto to = static_cast<gr_dtype_t>(c.attrs().get_int("to"));
    if (dtype_name(to).rfind("dtype(", 0) == 0) {
      return invalid_argument("attribute 'to' is no dtype: " + std::to_string(to));
    }
    c.set_output(0, {to, c.input(0).shape});
    const bool wide = to == GR_INT64 || to == GR_INT32;
    if (wide && c.known(0) != nullptr) c.set_known(0, *c.known(0));
    return {};
  };
  op.grad = [](GradContext& g) {
    const gr_dtype_t from = g.e().type(g.input(0)).dtype;
    if (g.needs(0) && is_real(from)) g.set_grad(0, g.e().cast(g.grad_output(0), from));
  };
  return op;
}

OpDef identity_op() {
  OpDef op = define("Identity", "input", "output", "The input itself: Y = X.");
  op.view = true;
  op.infer = [](InferContext& c) -> Status {
    c.set_output(0, c.input(0));
    if (c.known(0) != nullptr) c.set_known(0, *c.known(0));
    return {};
  };
  op.grad = [](GradContext& g) {
    if (g.needs(0)) g.set_grad(0, g.grad_output(0));
  };
  return op;
}

/// 0 less the known integers, or 1 less the known bools.
void keep_known_less(InferContext& c, int64_t from) {
  if (c.known(0) == nullptr) return;
  KnownInts out;
  for (const Dim& each : *c.known(0)) out.push_back(Dim(from) - each);
  c.set_known(0, std::move(out));
}

OpDef test_op(std::string name, Dtypes set, std::string doc) {
  OpDef op = primitive(std::move(name), set, std::move(doc), nullptr);
  op.infer = [set](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, set));
    c.set_output(0, {GR_BOOL, c.input(0).shape});
    if (set == Dtypes::kBool) keep_known_less(c, 1);
    return {};
  };
  return op;
}

OpDef neg_op() {
  OpDef op = primitive("Neg", Dtypes::kNumber, "Y = -X.",
                       [](Emitter& e, ValueId gy, ValueId, ValueId) { return e.neg(gy); });
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(infer_like_first(c, Dtypes::kNumber));
    keep_known_less(c, 0);
    return {};
  };
  return op;
}

Status add_roots_and_powers(OpRegistry& ops) {
  GR_TRY(ops.add(primitive(
      "Sqrt", Dtypes::kReal, "Y = sqrt(X); NaN below 0.",
      [](Emitter& e, ValueId gy, ValueId, ValueId y) { return e.mul(gy, e.div(0.5, y)); })));
  GR_TRY(
      ops.add(primitive("Exp", Dtypes::kReal, "Y = e^X.",
                        [](Emitter& e, ValueId gy, ValueId, ValueId y) { return e.mul(gy, y); })));
  GR_TRY(
      ops.add(primitive("Log", Dtypes::kReal, "Y = ln(X); -inf at 0, NaN below.",
                        [](Emitter& e, ValueId gy, ValueId x, ValueId) { return e.div(gy, x); })));
  return ops.add(primitive("Erf", Dtypes::kReal,
                           "The error function: Y = 2/sqrt(pi) times the "
                           "integral of e^(-t^2) from 0 to X.",
                           [](Emitter& e, ValueId gy, ValueId x, ValueId) {
                             const double scale = 2.0 / std::sqrt(std::acos(-1.0));
                             return e.mul(gy, e.mul(e.op("Exp", {e.neg(e.mul(x, x))}), scale));
                           }));
}

Status add_squashing(OpRegistry& ops) {
  GR_TRY(ops.add(primitive("Tanh", Dtypes::kReal, "Y = tanh(X).",
                           [](Emitter& e, ValueId gy, ValueId, ValueId y) {
                             return e.mul(gy, e.sub(1.0, e.mul(y, y)));
                           })));
  GR_TRY(ops.add(primitive("Sigmoid", Dtypes::kReal, "Y = 1 / (1 + e^-X), without overflow.",
                           [](Emitter& e, ValueId gy, ValueId, ValueId y) {
                             return e.mul(gy, e.mul(y, e.sub(1.0, y)));
                           })));
  return ops.add(primitive("Relu", Dtypes::kNumber, "Y = max(X, 0); the gradient at 0 is 0.",
                           [](Emitter& e, ValueId gy, ValueId x, ValueId) {
                             const ValueId on = e.op("Greater", {x, e.like(x, 0.0)});
                             return e.where(on, gy, e.like(gy, 0.0));
                           }));
}

Status add_circular(OpRegistry& ops) {
  GR_TRY(ops.add(primitive(
      "Sin", Dtypes::kReal, "Y = sin(X), X in radians.",
      [](Emitter& e, ValueId gy, ValueId x, ValueId) { return e.mul(gy, e.op("Cos", {x})); })));
  GR_TRY(ops.add(primitive("Cos", Dtypes::kReal, "Y = cos(X), X in radians.",
                           [](Emitter& e, ValueId gy, ValueId x, ValueId) {
                             return e.neg(e.mul(gy, e.op("Sin", {x})));
                           })));
  return ops.add(primitive("Atan", Dtypes::kReal, "The angle in (-pi/2, pi/2) whose tangent is X.",
                           [](Emitter& e, ValueId gy, ValueId x, ValueId) {
                             return e.div(gy, e.add(e.mul(x, x), 1.0));
                           }));
}

}  // namespace

Status add_unary_ops(OpRegistry& ops) {
  GR_TRY(ops.add(neg_op()));
  GR_TRY(ops.add(primitive(
      "Abs", Dtypes::kNumber, "Y = |X|; the gradient at 0 is 0.",
      [](Emitter& e, ValueId gy, ValueId x, ValueId) { return e.mul(gy, e.op("Sign", {x})); })));
  GR_TRY(add_roots_and_powers(ops));
  GR_TRY(add_squashing(ops));
  GR_TRY(add_circular(ops));
  GR_TRY(ops.add(primitive("Sign", Dtypes::kNumber,
                           "-1, 0 or 1 by the sign of X; NaN stays NaN. "
                           "Autodiff stops here: the slope is 0 wherever there is one.",
                           nullptr)));
  GR_TRY(ops.add(primitive("Floor", Dtypes::kReal,
                           "The largest integer not above X. Autodiff stops here.", nullptr)));
  GR_TRY(ops.add(test_op("Not", Dtypes::kBool, "Y = not X.")));
  GR_TRY(ops.add(test_op("IsNaN", Dtypes::kReal, "True where X is NaN.")));
  GR_TRY(ops.add(cast_op()));
  GR_TRY(ops.add(identity_op()));
  return add_activation_ops(ops);
}

}  // namespace gradrack
