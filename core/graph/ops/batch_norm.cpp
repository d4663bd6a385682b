// SPDX-License-Identifier: Apache-2.0
// Operator entries: BatchNormalization and its gradients in training mode.
//
// Training mode normalises by the batch's own statistics and says what the running ones become (a
// model writes them into its buffers); inference mode uses the running ones. Invariant: the
// variance is the population's (divided by N), and statistics are two-pass in float64.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

struct BatchStatistics {
  ValueId mean = GR_NO_VALUE;  // float64 [1, C, 1, ...]
  ValueId variance = GR_NO_VALUE;
  ValueId inverse = GR_NO_VALUE;     // 1/sqrt(variance + epsilon)
  ValueId normalized = GR_NO_VALUE;  // (x - mean) * inverse
};

BatchStatistics batch_statistics(Emitter& e, ValueId x, double epsilon) {
  BatchStatistics s;
  const auto axes = all_but_channel(e.rank(x));
  const ValueId wide = e.cast(x, GR_FLOAT64);
  s.mean = e.reduce_mean(wide, axes, true);
  const ValueId centered = e.sub(wide, s.mean);
  s.variance = e.reduce_mean(e.mul(centered, centered), axes, true);
  s.inverse = e.div(1.0, e.op("Sqrt", {e.add(s.variance, epsilon)}));
  s.normalized = e.mul(centered, s.inverse);
  return s;
}

/// [C] as [C, 1, ...], which broadcasts with x.
ValueId per_channel(Emitter& e, ValueId vector, ValueId x) {
  return e.unsqueeze(vector, axis_range(1, e.rank(x) - 1));
}

Status check_channels(const InferContext& c, size_t x) {
  GR_TRY(want_dtype(c, x, Dtypes::kReal));
  if (c.input(x).shape.size() >= 2) return {};
  return invalid_argument("X must be [N, C, ...], got " + to_text(c.input(x)));
}

Status infer_batch_norm(InferContext& c) {
  GR_TRY(check_channels(c, 0));
  const Type per_channel{c.input(0).dtype, {c.input(0).shape[1]}};
  const char* const names[] = {"X", "scale", "B", "input_mean", "input_var"};
  for (size_t k = 1; k < 5; ++k) GR_TRY(want_type(c, k, per_channel, names[k]));
  if (c.output_count() > 1 && c.attrs().get_int("training_mode") == 0) {
    return invalid_argument("running_mean and running_var are made with training_mode=1 only");
  }
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(3));
  c.set_output(2, c.input(4));
  return {};
}

Status infer_batch_norm_grad(InferContext& c) {  // gy, x, scale
  GR_TRY(check_channels(c, 1));
  GR_TRY(want_type(c, 0, c.input(1), "gy"));
  GR_TRY(want_type(c, 2, Type{c.input(1).dtype, {c.input(1).shape[1]}}, "scale"));
  c.set_output(0, c.input(1));
  return {};
}

Status infer_batch_norm_scale_grad(InferContext& c) {  // gy, x
  GR_TRY(check_channels(c, 1));
  GR_TRY(want_type(c, 0, c.input(1), "gy"));
  c.set_output(0, Type{c.input(1).dtype, {c.input(1).shape[1]}});
  return {};
}

/// old * momentum + new * (1 - momentum), in the buffer's dtype.
ValueId running(Emitter& e, ValueId old, ValueId batch, double momentum) {
  const ValueId kept = e.mul(e.cast(old, GR_FLOAT64), momentum);
  const ValueId added = e.mul(e.reshape_like(batch, old), 1.0 - momentum);
  return e.cast(e.add(kept, added), e.type(old).dtype);
}

void decompose_batch_norm(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId x = c.input(0), scale = per_channel(e, c.input(1), x);
  const ValueId bias = per_channel(e, c.input(2), x);
  const double epsilon = c.attrs().get_float("epsilon");
  if (c.attrs().get_int("training_mode") == 0) {
    const ValueId mean = per_channel(e, c.input(3), x);
    const ValueId deviation = e.op("Sqrt", {e.add(per_channel(e, c.input(4), x), epsilon)});
    const ValueId normalized = e.div(e.sub(x, mean), deviation);
    c.set_output(0, e.add(e.mul(normalized, scale), bias));
    return;
  }
  const BatchStatistics s = batch_statistics(e, x, epsilon);
  c.set_output(0, e.add(e.mul(e.cast(s.normalized, e.type(x).dtype), scale), bias));
  const double momentum = c.attrs().get_float("momentum");
  if (c.output_count() > 1) c.set_output(1, running(e, c.input(3), s.mean, momentum));
  if (c.output_count() > 2) c.set_output(2, running(e, c.input(4), s.variance, momentum));
}

/// scale * inverse * (gy - mean(gy) - n * mean(gy * n)).
void decompose_batch_norm_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId x = c.input(1);
  const auto axes = all_but_channel(e.rank(x));
  const BatchStatistics s = batch_statistics(e, x, c.attrs().get_float("epsilon"));
  const ValueId gy = e.cast(c.input(0), GR_FLOAT64);
  const ValueId along = e.reduce_mean(e.mul(gy, s.normalized), axes, true);
  const ValueId sum = e.sub(e.sub(gy, e.reduce_mean(gy, axes, true)), e.mul(s.normalized, along));
  const ValueId scale = e.cast(per_channel(e, c.input(2), x), GR_FLOAT64);
  c.set_output(0, e.cast(e.mul(e.mul(scale, s.inverse), sum), e.type(x).dtype));
}

void decompose_batch_norm_scale_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId x = c.input(1);
  const BatchStatistics s = batch_statistics(e, x, c.attrs().get_float("epsilon"));
  const ValueId product = e.mul(e.cast(c.input(0), GR_FLOAT64), s.normalized);
  const ValueId sum = e.reduce_sum(product, all_but_channel(e.rank(x)), false);
  c.set_output(0, e.cast(sum, e.type(x).dtype));
}

void grad_inference(GradContext& c) {
  Emitter& e = c.e();
  const ValueId gy = c.grad_output(0), x = c.input(0);
  const auto axes = all_but_channel(e.rank(x));
  const ValueId deviation =
      e.op("Sqrt", {e.add(per_channel(e, c.input(4), x), c.attrs().get_float("epsilon"))});
  if (c.needs(0)) c.set_grad(0, e.mul(gy, e.div(per_channel(e, c.input(1), x), deviation)));
  if (c.needs(1)) {
    const ValueId normalized = e.div(e.sub(x, per_channel(e, c.input(3), x)), deviation);
    c.set_grad(1, e.reduce_sum(e.mul(gy, normalized), axes, false));
  }
  if (c.needs(2)) c.set_grad(2, e.reduce_sum(gy, axes, false));
}

void grad_batch_norm(GradContext& c) {
  Emitter& e = c.e();
  const ValueId gy = c.grad_output(0);
  if (gy == GR_NO_VALUE || c.needs(3) || c.needs(4)) {
    e.fail(unsupported("running statistics have no gradient: they are state, not trained"));
    return;
  }
  if (c.attrs().get_int("training_mode") == 0) return grad_inference(c);
  const Attrs attrs{{"epsilon", c.attrs().get_float("epsilon")}};
  const ValueId x = c.input(0);
  if (c.needs(0)) {
    c.set_grad(0, e.own("BatchNormalizationGrad", {gy, x, c.input(1)}, attrs));
  }
  if (c.needs(1)) c.set_grad(1, e.own("BatchNormalizationScaleGrad", {gy, x}, attrs));
  if (c.needs(2)) c.set_grad(2, e.reduce_sum(gy, all_but_channel(e.rank(x)), false));
}

}  // namespace

Status add_batch_norm_ops(OpRegistry& ops) {
  OpDef norm = define(
      "BatchNormalization", "X, scale, B, input_mean, input_var", "Y, running_mean?, running_var?",
      "(X - mean) / sqrt(variance + epsilon) * scale + B per channel of X [N, C, ...]. Training "
      "mode takes the batch's population statistics, and running = input * momentum + batch * "
      "(1 - momentum); otherwise the input statistics are used. Running statistics have no "
      "gradient.");
  norm.attrs = {attr("epsilon", 1e-5), attr("momentum", 0.9), attr("training_mode", int64_t{0})};
  norm.infer = infer_batch_norm;
  norm.grad = grad_batch_norm;
  norm.decompose = decompose_batch_norm;
  GR_TRY(ops.add(norm));

  OpDef grad =
      define_own("BatchNormalizationGrad", "gy, x, scale", "gx",
                 "Of BatchNormalization in training mode to X: scale * r * (gy - mean(gy)"
                 " - n * mean(gy * n)), r = 1/sqrt(variance + epsilon), n = (x - mean) * r.");
  grad.attrs = {attr("epsilon", 1e-5)};
  grad.infer = infer_batch_norm_grad;
  grad.decompose = decompose_batch_norm_grad;
  GR_TRY(ops.add(grad));

  OpDef scale = define_own("BatchNormalizationScaleGrad", "gy, x", "gscale",
                           "Of BatchNormalization in training mode to scale: sum per channel of "
                           "gy * (x - mean) * r.");
  scale.attrs = {attr("epsilon", 1e-5)};
  scale.infer = infer_batch_norm_scale_grad;
  scale.decompose = decompose_batch_norm_scale_grad;
  return ops.add(scale);
}

}  // namespace gradrack
