// SPDX-License-Identifier: Apache-2.0
// Operator entries for the end of a step: gradrack.AdamW, gradrack.SumSquares, gradrack.IsFinite.
//
// Invariant: scalars (learning rate, step, bias corrections) are computed in float64 and meet
// tensors in the state's dtype; AdamW with ok = false gives back what it got.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

enum AdamInput { kParam, kGrad, kMean, kSquare, kRate, kStep, kOk };

Status infer_adamw(InferContext& c) {
  GR_TRY(want_dtype(c, kParam, Dtypes::kReal));
  GR_TRY(want_type(c, kGrad, c.input(kParam), "grad"));
  GR_TRY(want_dtype(c, kMean, Dtypes::kReal));
  const Type state{c.input(kMean).dtype, c.input(kParam).shape};
  GR_TRY(want_type(c, kMean, state, "exp_avg"));
  GR_TRY(want_type(c, kSquare, state, "exp_avg_sq"));
  GR_TRY(want_type(c, kRate, Type{GR_FLOAT64, {}}, "lr"));
  GR_TRY(want_type(c, kStep, Type{GR_FLOAT64, {}}, "step"));
  if (c.has_input(kOk)) GR_TRY(want_type(c, kOk, Type{GR_BOOL, {}}, "ok"));
  for (const char* name : {"beta1", "beta2"}) {
    const double beta = c.attrs().get_float(name);
    if (!(beta >= 0 && beta < 1)) {
      return invalid_argument(std::string(name) + " must be in [0, 1), got " +
                              std::to_string(beta));
    }
  }
  c.set_output(0, c.input(kParam));
  c.set_output(1, state);
  c.set_output(2, state);
  return {};
}

/// 1 - beta^step in float64.
ValueId bias_correction(Emitter& e, double beta, ValueId step) {
  return e.sub(1.0, e.op("Pow", {e.constant(GR_FLOAT64, beta), step}));
}

/// beta * old + (1 - beta) * fresh.
ValueId moving_average(Emitter& e, ValueId old, ValueId fresh, double beta) {
  return e.add(e.mul(old, beta), e.mul(fresh, 1.0 - beta));
}

void decompose_adamw(DecomposeContext& c) {
  Emitter& e = c.e();
  const Attrs& a = c.attrs();
  const gr_dtype_t dtype = e.type(c.input(kMean)).dtype;
  const ValueId lr = c.input(kRate), step = c.input(kStep);
  const ValueId p = e.cast(c.input(kParam), dtype), g = e.cast(c.input(kGrad), dtype);
  const ValueId mean = moving_average(e, c.input(kMean), g, a.get_float("beta1"));
  const ValueId square = moving_average(e, c.input(kSquare), e.mul(g, g), a.get_float("beta2"));
  // p (1 - lr wd) - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
  const ValueId kept = e.sub(1.0, e.mul(lr, a.get_float("weight_decay")));
  const ValueId rate = e.div(lr, bias_correction(e, a.get_float("beta1"), step));
  const ValueId root = e.op("Sqrt", {bias_correction(e, a.get_float("beta2"), step)});
  const ValueId scaled = e.div(e.op("Sqrt", {square}), e.cast(root, dtype));
  const ValueId direction = e.div(mean, e.add(scaled, a.get_float("eps")));
  const ValueId moved = e.sub(e.mul(p, e.cast(kept, dtype)), e.mul(direction, e.cast(rate, dtype)));
  ValueId outputs[] = {e.cast(moved, e.type(c.input(kParam)).dtype), mean, square};
  const int old[] = {kParam, kMean, kSquare};
  const bool gated = c.input_count() > kOk && c.input(kOk) != GR_NO_VALUE;
  for (size_t k = 0; k < c.output_count() && k < 3; ++k) {
    if (gated) outputs[k] = e.where(c.input(kOk), outputs[k], c.input(static_cast<size_t>(old[k])));
    c.set_output(k, outputs[k]);
  }
}

Status add_adamw(OpRegistry& ops) {
  OpDef adamw = define_own(
      "AdamW", "param, grad, exp_avg, exp_avg_sq, lr, step, ok?",
      "new_param, new_exp_avg, new_exp_avg_sq",
      "m = beta1 m + (1-beta1) g; v = beta2 v + (1-beta2) g^2; p = p (1 - lr weight_decay) - lr / "
      "(1-beta1^step) * m / (sqrt(v) / sqrt(1-beta2^step) + eps), as PyTorch's fused AdamW. step "
      "counts from 1. All stays as it was where ok is false.");
  adamw.attrs = {attr("beta1", 0.9), attr("beta2", 0.999), attr("eps", 1e-8),
                 attr("weight_decay", 0.0)};
  adamw.non_differentiable = true;
  adamw.gate_input = kOk;
  adamw.gated_state = {kParam, kMean, kSquare};
  adamw.infer = infer_adamw;
  adamw.decompose = decompose_adamw;
  return ops.add(adamw);
}

}  // namespace

Status add_update_ops(OpRegistry& ops) {
  GR_TRY(add_adamw(ops));
  OpDef squares = define_own("SumSquares", "x", "sum",
                             "Sum of x^2 over all elements as a float64 scalar: the norm of [3e20, "
                             "4e20] is then 5e20 in float32 too.");
  squares.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kReal));
    c.set_output(0, Type{GR_FLOAT64, {}});
    return {};
  };
  squares.decompose = [](DecomposeContext& c) {
    Emitter& e = c.e();
    const ValueId wide = e.cast(c.input(0), GR_FLOAT64);
    c.set_output(0, e.reduce_sum(e.mul(wide, wide), axis_range(0, e.rank(wide)), false));
  };
  GR_TRY(ops.add(squares));

  OpDef finite = define_own("IsFinite", "x", "finite",
                            "True for each element that is neither infinite nor NaN: x - x == 0.");
  finite.non_differentiable = true;
  finite.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kReal));
    c.set_output(0, Type{GR_BOOL, c.input(0).shape});
    return {};
  };
  finite.decompose = [](DecomposeContext& c) {
    Emitter& e = c.e();
    const ValueId x = c.input(0);
    c.set_output(0, e.op("Equal", {e.sub(x, x), e.like(x, 0.0)}));
  };
  return ops.add(finite);
}

}  // namespace gradrack
