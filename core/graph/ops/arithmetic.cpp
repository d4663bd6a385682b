// SPDX-License-Identifier: Apache-2.0
// Operator entries: Mean, Mod, Ceil, Round, IsInf, CastLike, Size.
//
// What models made elsewhere use beside the arithmetic of binary.cpp and unary.cpp. All but Mod are
// decomposed; roundings are flat, so autodiff stops at them.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/known.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

OpDef mean_op() {
  OpDef op = define("Mean", "data*", "mean", "Mean of all inputs, added from the left.");
  op.infer = [](InferContext& c) { return infer_broadcast(c, Dtypes::kReal); };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    std::vector<ValueId> inputs;
    for (size_t k = 0; k < d.input_count(); ++k) inputs.push_back(d.input(k));
    const auto count = static_cast<double>(inputs.size());
    const ValueId sum = e.op("Sum", std::move(inputs));
    d.set_output(0, e.div(sum, e.like(sum, count)));
  };
  return op;
}

/// Floor's rest of known numbers; symbols leave it open.
std::optional<Dim> rest_of(const Dim& a, const Dim& b) {
  if (!a.is_number() || !b.is_number() || b == Dim(0)) return std::nullopt;
  return a - a.floor_div(b) * b;
}

Status infer_mod(InferContext& c) {
  GR_TRY(infer_broadcast(c, Dtypes::kNumber));
  const bool fmod = c.attrs().get_int("fmod") != 0;
  if (is_real(c.input(0).dtype) && !fmod) {
    return invalid_argument("floating inputs need fmod=1");
  }
  if (!fmod) keep_known(c, rest_of);
  return {};
}

OpDef mod_op() {
  OpDef op = define("Mod", "A, B", "C",
                    "The rest of A / B: with the sign of A when fmod is 1, which floating inputs "
                    "need, else with that of B. An integer B of 0 is an error. In the gradient of "
                    "B the whole quotient is a constant.");
  op.attrs = {attr("fmod", int64_t{0})};
  op.primitive = true;
  op.infer = infer_mod;
  op.grad = [](GradContext& g) {
    Emitter& e = g.e();
    const ValueId gy = g.grad_output(0);
    if (g.needs(0)) g.set_grad(0, e.sum_to(gy, g.input(0)));
    if (!g.needs(1)) return;
    const ValueId quotient = e.div(e.sub(g.output(0), g.input(0)), g.input(1));
    g.set_grad(1, e.sum_to(e.mul(gy, quotient), g.input(1)));
  };
  return op;
}

ValueId ceil_of(Emitter& e, const Attrs&, ValueId x) { return e.neg(e.op("Floor", {e.neg(x)})); }

/// The nearer of floor and floor + 1; the even one of two at the same distance.
ValueId round_of(Emitter& e, const Attrs&, ValueId x) {
  const ValueId low = e.op("Floor", {x});
  const ValueId above = e.sub(x, low);  // exact
  const ValueId half = e.like(x, 0.5);
  const ValueId high = e.add(low, 1.0);
  const ValueId even = e.mul(e.op("Floor", {e.mul(high, 0.5)}), 2.0);
  const ValueId down_or_even = e.where(e.op("Less", {above, half}), low, even);
  return e.where(e.op("Greater", {above, half}), high, down_or_even);
}

OpDef flat_op(std::string name, std::string doc, Formula formula) {
  OpDef op = formula_op(std::move(name), std::move(doc), {}, formula, Dtypes::kReal);
  op.non_differentiable = true;
  return op;
}

OpDef is_inf_op() {
  OpDef op = define("IsInf", "X", "Y",
                    "True where X is infinite and its sign is asked for: detect_positive, "
                    "detect_negative.");
  op.attrs = {attr("detect_negative", int64_t{1}), attr("detect_positive", int64_t{1})};
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kReal));
    c.set_output(0, {GR_BOOL, c.input(0).shape});
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const ValueId x = d.input(0);
    // x - x is NaN for infinities and NaN alone; NaN has no order.
    const ValueId infinite = e.op("And", {e.op("IsNaN", {e.sub(x, x)}), e.op("Equal", {x, x})});
    const ValueId zero = e.like(x, 0.0);
    ValueId wanted = e.op("Less", {x, x});  // nowhere
    if (d.attrs().get_int("detect_positive") != 0) {
      wanted = e.op("Or", {wanted, e.op("Greater", {x, zero})});
    }
    if (d.attrs().get_int("detect_negative") != 0) {
      wanted = e.op("Or", {wanted, e.op("Less", {x, zero})});
    }
    d.set_output(0, e.op("And", {infinite, wanted}));
  };
  return op;
}

OpDef cast_like_op() {
  OpDef op = define("CastLike", "input, target_type", "output",
                    "The input in the dtype of target_type, as Cast converts.");
  op.attrs = {attr("saturate", int64_t{1})};
  op.infer = [](InferContext& c) -> Status {
    c.set_output(0, {c.input(1).dtype, c.input(0).shape});
    if (!is_real(c.input(1).dtype) && c.known(0) != nullptr) c.set_known(0, *c.known(0));
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    const ValueId y = d.e().cast(d.input(0), d.e().type(d.input(1)).dtype);
    d.set_output(0, y == d.input(0) ? d.e().op("Identity", {y}) : y);
  };
  return op;
}

OpDef size_op() {
  OpDef op = define("Size", "data", "size", "The number of elements of data as an int64 scalar.");
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    c.set_output(0, {GR_INT64, {}});
    c.set_known(0, {element_count(c.input(0).shape)});
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    d.set_output(0, e.op("ReduceProd", {e.shape_of(d.input(0))}, {{"keepdims", int64_t{0}}}));
  };
  return op;
}

}  // namespace

Status add_arithmetic_ops(OpRegistry& ops) {
  GR_TRY(ops.add(mean_op()));
  GR_TRY(ops.add(mod_op()));
  GR_TRY(
      ops.add(flat_op("Ceil", "The smallest integer not below X. Autodiff stops here.", ceil_of)));
  GR_TRY(ops.add(flat_op("Round", "The nearest integer, the even one of two. Autodiff stops here.",
                         round_of)));
  GR_TRY(ops.add(is_inf_op()));
  GR_TRY(ops.add(cast_like_op()));
  return ops.add(size_op());
}

}  // namespace gradrack
