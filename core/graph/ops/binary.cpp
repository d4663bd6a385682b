// SPDX-License-Identifier: Apache-2.0
// Operator entries with two or more inputs, element by element with numpy's broadcasting:
// arithmetic, Min, Max, Sum, comparisons, logic and Where.
//
// Gradients are summed down to the shape of the input that was broadcast. Arithmetic on integers
// that are known while building keeps them known, so that shapes can be computed in the graph.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/known.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

OpDef arithmetic(std::string name, std::string doc, DimRule rule, void (*grad)(GradContext&)) {
  OpDef op = define(std::move(name), "A, B", "C", std::move(doc));
  op.primitive = true;
  op.infer = [rule](InferContext& c) -> Status {
    GR_TRY(infer_broadcast(c, Dtypes::kNumber));
    keep_known(c, rule);
    return {};
  };
  op.grad = grad;
  return op;
}

/// Sets the gradient of input k, summed down to that input's shape.
void set_summed(GradContext& g, size_t k, ValueId grad) {
  g.set_grad(k, g.e().sum_to(grad, g.input(k)));
}

void add_grad(GradContext& g) {
  for (size_t k = 0; k < g.input_count(); ++k) {
    if (g.needs(k)) set_summed(g, k, g.grad_output(0));
  }
}

void sub_grad(GradContext& g) {
  if (g.needs(0)) set_summed(g, 0, g.grad_output(0));
  if (g.needs(1)) g.set_grad(1, g.e().neg(g.e().sum_to(g.grad_output(0), g.input(1))));
}

void mul_grad(GradContext& g) {
  for (size_t k = 0; k < 2; ++k) {
    if (g.needs(k)) set_summed(g, k, g.e().mul(g.grad_output(0), g.input(1 - k)));
  }
}

void div_grad(GradContext& g) {
  Emitter& e = g.e();
  const ValueId share = e.div(g.grad_output(0), g.input(1));
  if (g.needs(0)) set_summed(g, 0, share);
  if (g.needs(1)) set_summed(g, 1, e.neg(e.mul(share, g.output(0))));
}

ValueId pow_base_grad(Emitter& e, ValueId gy, ValueId a, ValueId b) {
  const Value& exponent = e.graph().value(b);
  if (exponent.constant != nullptr && exponent.constant->reals.size() == 1) {
    const double n = exponent.constant->reals[0];
    if (n == 0.0) return e.mul(gy, 0.0);
    if (n == 1.0) return gy;
    const ValueId power = n == 2.0 ? a : e.op("Pow", {a, e.like(a, n - 1.0)});
    return e.mul(gy, e.mul(power, n));
  }
  const ValueId real = e.cast(b, e.type(a).dtype);
  const ValueId slope = e.mul(real, e.op("Pow", {a, e.add(real, -1.0)}));
  const ValueId flat = e.op("Equal", {real, e.like(real, 0.0)});
  return e.where(flat, e.like(gy, 0.0), e.mul(gy, slope));
}

void pow_grad(GradContext& g) {
  Emitter& e = g.e();
  const ValueId gy = g.grad_output(0), a = g.input(0), b = g.input(1);
  if (g.needs(0)) set_summed(g, 0, pow_base_grad(e, gy, a, b));
  if (!g.needs(1)) return;
  const ValueId slope = e.mul(g.output(0), e.op("Log", {a}));
  const ValueId at_zero = e.op(
      "And", {e.op("Equal", {a, e.like(a, 0.0)}), e.op("GreaterOrEqual", {b, e.like(b, 0.0)})});
  const ValueId grad = e.where(at_zero, e.like(gy, 0.0), e.mul(gy, slope));
  set_summed(g, 1, e.cast(grad, e.type(b).dtype));
}

OpDef pow_op() {
  OpDef op = arithmetic("Pow",
                        "C = A^B in A's dtype. The gradient of A is B A^(B-1), 0 where B is 0; "
                        "that of B is C ln(A), 0 where A is 0 and B is not negative.",
                        nullptr, pow_grad);
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kNumber));
    GR_TRY(want_dtype(c, 1, Dtypes::kNumber));
    GR_ASSIGN(Shape shape, broadcast_shapes(c.input(0).shape, c.input(1).shape));
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return {};
  };
  return op;
}

void extreme_grad(GradContext& g) {
  Emitter& e = g.e();
  const ValueId gy = g.grad_output(0);
  ValueId taken = GR_NO_VALUE;
  for (size_t k = 0; k < g.input_count(); ++k) {
    const ValueId equal = e.op("Equal", {g.input(k), g.output(0)});
    const ValueId mine = taken == GR_NO_VALUE ? equal : e.op("And", {equal, e.op("Not", {taken})});
    taken = taken == GR_NO_VALUE ? equal : e.op("Or", {taken, equal});
    if (g.needs(k)) set_summed(g, k, e.where(mine, gy, e.like(gy, 0.0)));
  }
}

OpDef extreme(std::string name, std::string doc, DimRule rule) {
  OpDef op = define(std::move(name), "data*", "C", std::move(doc));
  op.primitive = true;
  op.infer = [rule](InferContext& c) -> Status {
    GR_TRY(infer_broadcast(c, Dtypes::kNumber));
    keep_known(c, rule);
    return {};
  };
  op.grad = extreme_grad;
  return op;
}

OpDef sum_op() {
  OpDef op = define("Sum", "data*", "sum", "Sum of all inputs, added from the left.");
  op.infer = [](InferContext& c) { return infer_broadcast(c, Dtypes::kNumber); };
  op.decompose = [](DecomposeContext& d) {
    ValueId y = d.input_count() == 1 ? d.e().op("Identity", {d.input(0)}) : d.input(0);
    for (size_t k = 1; k < d.input_count(); ++k) y = d.e().add(y, d.input(k));
    d.set_output(0, y);
  };
  op.grad = add_grad;
  return op;
}

OpDef predicate(std::string name, Dtypes set, std::string doc, DimRule rule = nullptr) {
  OpDef op = define(std::move(name), "A, B", "C", std::move(doc));
  op.primitive = true;
  op.non_differentiable = true;
  op.infer = [set, rule](InferContext& c) -> Status {
    GR_TRY(infer_broadcast(c, set, true));
    keep_known(c, rule);
    return {};
  };
  return op;
}

OpDef where_op() {
  OpDef op = define("Where", "condition, X, Y", "output",
                    "X where the condition holds, else Y, all three broadcast.");
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kBool));
    GR_TRY(want_same_dtype(c, Dtypes::kAny, 1));
    GR_ASSIGN(Shape shape, broadcast_shapes(c.input(1).shape, c.input(2).shape));
    GR_ASSIGN(shape, broadcast_shapes(c.input(0).shape, shape));
    c.set_output(0, {c.input(1).dtype, std::move(shape)});
    keep_known_where(c);
    return {};
  };
  op.grad = [](GradContext& g) {
    Emitter& e = g.e();
    const ValueId gy = g.grad_output(0);
    if (g.needs(1)) set_summed(g, 1, e.where(g.input(0), gy, e.like(gy, 0.0)));
    if (g.needs(2)) set_summed(g, 2, e.where(g.input(0), e.like(gy, 0.0), gy));
  };
  return op;
}

Status add_arithmetic(OpRegistry& ops) {
  GR_TRY(ops.add(arithmetic(
      "Add", "C = A + B.", [](const Dim& a, const Dim& b) { return std::optional<Dim>(a + b); },
      add_grad)));
  GR_TRY(ops.add(arithmetic(
      "Sub", "C = A - B.", [](const Dim& a, const Dim& b) { return std::optional<Dim>(a - b); },
      sub_grad)));
  GR_TRY(ops.add(arithmetic(
      "Mul", "C = A B, element by element.",
      [](const Dim& a, const Dim& b) { return std::optional<Dim>(a * b); }, mul_grad)));
  OpDef div = arithmetic("Div", "C = A / B; integers are divided toward zero, by zero is an error.",
                         nullptr, div_grad);
  div.infer = [](InferContext& c) -> Status {
    GR_TRY(infer_broadcast(c, Dtypes::kNumber));
    if (c.known(1) != nullptr) {
      for (const Dim& dim : *c.known(1)) {
        if (dim == Dim(0)) return invalid_argument("integer division by zero");
      }
    }
    // Sizes are never negative, so the floor is what division toward zero gives.
    keep_known(c, [](const Dim& a, const Dim& b) { return std::optional<Dim>(a.floor_div(b)); });
    return {};
  };
  GR_TRY(ops.add(std::move(div)));
  return ops.add(pow_op());
}

Status add_comparisons(OpRegistry& ops) {
  GR_TRY(ops.add(
      predicate("Equal", Dtypes::kAny, "True where A = B; NaN equals nothing.", equal_dims)));
  const auto at_most = [](const Dim& a, const Dim& b) { return negated_test(less_dims(b, a)); };
  const auto greater = [](const Dim& a, const Dim& b) { return less_dims(b, a); };
  const auto at_least = [](const Dim& a, const Dim& b) { return negated_test(less_dims(a, b)); };
  GR_TRY(ops.add(predicate("Less", Dtypes::kNumber, "True where A < B.", less_dims)));
  GR_TRY(ops.add(predicate("LessOrEqual", Dtypes::kNumber, "True where A <= B.", at_most)));
  GR_TRY(ops.add(predicate("Greater", Dtypes::kNumber, "True where A > B.", greater)));
  return ops.add(predicate("GreaterOrEqual", Dtypes::kNumber, "True where A >= B.", at_least));
}

}  // namespace

Status add_binary_ops(OpRegistry& ops) {
  GR_TRY(add_arithmetic(ops));
  GR_TRY(ops.add(extreme("Max",
                         "Largest of the inputs, NaN if one is NaN; of equal ones the first "
                         "gets the gradient.",
                         larger_dim)));
  GR_TRY(ops.add(extreme("Min",
                         "Smallest of the inputs, NaN if one is NaN; of equal ones the "
                         "first gets the gradient.",
                         smaller_dim)));
  GR_TRY(ops.add(sum_op()));
  GR_TRY(add_comparisons(ops));
  GR_TRY(ops.add(predicate("And", Dtypes::kBool, "True where A and B are.", smaller_dim)));
  GR_TRY(ops.add(predicate("Or", Dtypes::kBool, "True where A or B is.", larger_dim)));
  const auto differ = [](const Dim& a, const Dim& b) { return negated_test(equal_dims(a, b)); };
  GR_TRY(ops.add(predicate("Xor", Dtypes::kBool, "True where A and B differ.", differ)));
  return ops.add(where_op());
}

}  // namespace gradrack
