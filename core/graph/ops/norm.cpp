// SPDX-License-Identifier: Apache-2.0
// Operator entries: LayerNormalization, RMSNormalization, GroupNormalization and their gradients.
//
// The gradient operators take x and find its statistics again: a row is read anyway, and nothing
// but x has to be kept for the backward pass. Invariant: statistics are two-pass and in float64, so
// a large mean does not cancel and large values do not overflow (NUM-05, NUM-06).
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// x with its mean taken off (layer norm only) and 1/sqrt(variance + epsilon), both in float64.
struct Statistics {
  ValueId mean = GR_NO_VALUE;
  ValueId centered = GR_NO_VALUE;
  ValueId inverse = GR_NO_VALUE;
  ValueId normalized = GR_NO_VALUE;
};

Statistics statistics(Emitter& e, ValueId x, const std::vector<int64_t>& axes, double epsilon,
                      bool center) {
  Statistics s;
  s.centered = e.cast(x, GR_FLOAT64);
  if (center) {
    s.mean = e.reduce_mean(s.centered, axes, true);
    s.centered = e.sub(s.centered, s.mean);
  }
  const ValueId variance = e.reduce_mean(e.mul(s.centered, s.centered), axes, true);
  s.inverse = e.div(1.0, e.op("Sqrt", {e.add(variance, epsilon)}));
  s.normalized = e.mul(s.centered, s.inverse);
  return s;
}

/// First of the normalised axes; the graph has checked it.
size_t first_axis(const Attrs& attrs, size_t rank) {
  const int64_t axis = attrs.get_int("axis");
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

/// The dtype of statistics as outputs: float32 (stash_type 1), float64 for float64.
gr_dtype_t stash_dtype(gr_dtype_t dtype) {
  return dtype == GR_FLOAT64 ? gr_dtype_t{GR_FLOAT64} : gr_dtype_t{GR_FLOAT32};
}

Status check_stash(const Attrs& attrs) {
  const int64_t stash = attrs.get_int("stash_type", 1);
  if (stash == 1) return {};
  return unsupported(
      "stash_type must be 1 (statistics are computed in float64 whatever it is), got " +
      std::to_string(stash));
}

/// Type of the scale for input x, normalised from attribute `axis` on.
Result<Type> scale_type(const InferContext& c, size_t x) {
  const Shape& shape = c.input(x).shape;
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), shape.size()));
  return Type{c.input(x).dtype, Shape(shape.begin() + axis, shape.end())};
}

Status infer_row_norm(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_TRY(check_stash(c.attrs()));
  GR_ASSIGN(const Type scale, scale_type(c, 0));
  GR_TRY(want_type(c, 1, scale, "the scale"));
  if (c.has_input(2)) GR_TRY(want_type(c, 2, scale, "B"));
  c.set_output(0, c.input(0));
  Type stash{stash_dtype(c.input(0).dtype), c.input(0).shape};
  for (size_t k = stash.shape.size() - scale.shape.size(); k < stash.shape.size(); ++k) {
    stash.shape[k] = Dim(1);
  }
  c.set_output(1, stash);
  c.set_output(2, stash);
  return {};
}

Status infer_row_norm_grad(InferContext& c) {  // gy, x, scale
  GR_TRY(want_dtype(c, 1, Dtypes::kReal));
  GR_TRY(want_type(c, 0, c.input(1), "gy"));
  GR_ASSIGN(const Type scale, scale_type(c, 1));
  GR_TRY(want_type(c, 2, scale, "scale"));
  c.set_output(0, c.input(1));
  return {};
}

Status infer_row_norm_scale_grad(InferContext& c) {  // gy, x
  GR_TRY(want_dtype(c, 1, Dtypes::kReal));
  GR_TRY(want_type(c, 0, c.input(1), "gy"));
  GR_ASSIGN(const Type scale, scale_type(c, 1));
  c.set_output(0, scale);
  return {};
}

/// Y = normalised * scale (+ B); Mean and InvStdDev when wanted.
void decompose_row_norm(DecomposeContext& c, bool center) {
  Emitter& e = c.e();
  const ValueId x = c.input(0);
  const gr_dtype_t dtype = e.type(x).dtype;
  const auto axes = axis_range(first_axis(c.attrs(), e.rank(x)), e.rank(x));
  const Statistics s = statistics(e, x, axes, c.attrs().get_float("epsilon"), center);
  ValueId y = e.mul(e.cast(s.normalized, dtype), c.input(1));
  if (c.input_count() > 2 && c.input(2) != GR_NO_VALUE) y = e.add(y, c.input(2));
  c.set_output(0, y);
  if (c.output_count() > 1) c.set_output(1, e.cast(s.mean, stash_dtype(dtype)));
  if (c.output_count() > 2) c.set_output(2, e.cast(s.inverse, stash_dtype(dtype)));
}

/// inverse * (g - mean(g) - normalised * mean(g * normalised)) with g = gy * scale; RMS: no
/// mean(g).
void decompose_row_norm_grad(DecomposeContext& c, bool center) {
  Emitter& e = c.e();
  const ValueId x = c.input(1);
  const auto axes = axis_range(first_axis(c.attrs(), e.rank(x)), e.rank(x));
  const Statistics s = statistics(e, x, axes, c.attrs().get_float("epsilon"), center);
  const ValueId g = e.cast(e.mul(c.input(0), c.input(2)), GR_FLOAT64);
  const ValueId along = e.reduce_mean(e.mul(g, s.normalized), axes, true);
  ValueId sum = e.sub(g, e.mul(s.normalized, along));
  if (center) sum = e.sub(sum, e.reduce_mean(g, axes, true));
  c.set_output(0, e.cast(e.mul(s.inverse, sum), e.type(x).dtype));
}

/// Sum over rows of gy * normalised.
void decompose_row_norm_scale_grad(DecomposeContext& c, bool center) {
  Emitter& e = c.e();
  const ValueId x = c.input(1);
  const size_t first = first_axis(c.attrs(), e.rank(x));
  const Statistics s =
      statistics(e, x, axis_range(first, e.rank(x)), c.attrs().get_float("epsilon"), center);
  const ValueId product = e.mul(e.cast(c.input(0), GR_FLOAT64), s.normalized);
  c.set_output(0, e.cast(e.reduce_sum(product, axis_range(0, first), false), e.type(x).dtype));
}

/// dX and dScale by an operator each, so that they can be scheduled apart; dB is a plain sum.
void row_norm_gradients(GradContext& c, const char* x_op, const char* scale_op) {
  Emitter& e = c.e();
  const ValueId gy = c.grad_output(0);
  if (gy == GR_NO_VALUE) {
    e.fail(
        unsupported("Mean and InvStdDev have no gradient; compute them from ReduceMean instead"));
    return;
  }
  const Attrs attrs{{"axis", c.attrs().get_int("axis")},
                    {"epsilon", c.attrs().get_float("epsilon")}};
  if (c.needs(0)) c.set_grad(0, e.own(x_op, {gy, c.input(0), c.input(1)}, attrs));
  if (c.needs(1)) c.set_grad(1, e.own(scale_op, {gy, c.input(0)}, attrs));
  if (c.input_count() > 2 && c.needs(2)) c.set_grad(2, e.sum_to(gy, c.input(2)));
}

std::vector<AttrDef> row_norm_attrs() { return {attr("axis", int64_t{-1}), attr("epsilon", 1e-5)}; }

Status add_layer_norm(OpRegistry& ops) {
  OpDef norm = define("LayerNormalization", "X, Scale, B?", "Y, Mean?, InvStdDev?",
                      "(X - mean) / sqrt(variance + epsilon) * Scale + B over the axes from "
                      "`axis` on. Scale and B have the shape of those axes.");
  norm.attrs = row_norm_attrs();
  norm.attrs.push_back(attr("stash_type", int64_t{1}));
  norm.infer = infer_row_norm;
  norm.grad = [](GradContext& c) {
    row_norm_gradients(c, "LayerNormalizationGrad", "LayerNormalizationScaleGrad");
  };
  norm.decompose = [](DecomposeContext& c) { decompose_row_norm(c, true); };
  GR_TRY(ops.add(norm));

  OpDef grad = define_own("LayerNormalizationGrad", "gy, x, scale", "gx",
                          "Of LayerNormalization to X: r * (g - mean(g) - n * mean(g * n)), with "
                          "g = gy * scale, r = 1/sqrt(variance + epsilon), n = (x - mean) * r.");
  grad.attrs = row_norm_attrs();
  grad.infer = infer_row_norm_grad;
  grad.decompose = [](DecomposeContext& c) { decompose_row_norm_grad(c, true); };
  GR_TRY(ops.add(grad));

  OpDef scale = define_own("LayerNormalizationScaleGrad", "gy, x", "gscale",
                           "Of LayerNormalization to Scale: sum over rows of gy * (x - mean) * r.");
  scale.attrs = row_norm_attrs();
  scale.infer = infer_row_norm_scale_grad;
  scale.decompose = [](DecomposeContext& c) { decompose_row_norm_scale_grad(c, true); };
  return ops.add(scale);
}

Status add_rms_norm(OpRegistry& ops) {
  OpDef norm = define("RMSNormalization", "X, scale", "Y",
                      "X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on. "
                      "scale has the shape of those axes.");
  norm.attrs = row_norm_attrs();
  norm.attrs.push_back(attr("stash_type", int64_t{1}));
  norm.infer = infer_row_norm;
  norm.grad = [](GradContext& c) {
    row_norm_gradients(c, "RMSNormalizationGrad", "RMSNormalizationScaleGrad");
  };
  norm.decompose = [](DecomposeContext& c) { decompose_row_norm(c, false); };
  GR_TRY(ops.add(norm));

  OpDef grad = define_own("RMSNormalizationGrad", "gy, x, scale", "gx",
                          "Of RMSNormalization to X: r * (g - n * mean(g * n)), with g = gy * "
                          "scale, r = 1/sqrt(mean(x^2) + epsilon), n = x * r.");
  grad.attrs = row_norm_attrs();
  grad.infer = infer_row_norm_grad;
  grad.decompose = [](DecomposeContext& c) { decompose_row_norm_grad(c, false); };
  GR_TRY(ops.add(grad));

  OpDef scale = define_own("RMSNormalizationScaleGrad", "gy, x", "gscale",
                           "Of RMSNormalization to scale: sum over rows of gy * x * r.");
  scale.attrs = row_norm_attrs();
  scale.infer = infer_row_norm_scale_grad;
  scale.decompose = [](DecomposeContext& c) { decompose_row_norm_scale_grad(c, false); };
  return ops.add(scale);
}

Status infer_group_norm(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_TRY(check_stash(c.attrs()));
  const Shape& shape = c.input(0).shape;
  const int64_t groups = c.attrs().get_int("num_groups");
  if (shape.size() < 2 || !shape[1].is_number()) {
    return invalid_argument("X must be [N, C, ...] with a number of channels");
  }
  if (groups < 1 || shape[1].number() % groups != 0) {
    return invalid_argument("num_groups must divide the " + shape[1].text() + " channels, got " +
                            std::to_string(groups));
  }
  const Type per_channel{c.input(0).dtype, {shape[1]}};
  GR_TRY(want_type(c, 1, per_channel, "scale"));
  GR_TRY(want_type(c, 2, per_channel, "bias"));
  c.set_output(0, c.input(0));
  return {};
}

void decompose_group_norm(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId x = c.input(0);
  const auto spatial = axis_range(1, e.rank(x) - 1);  // of the scale, once it is [C, 1, ...]
  // Element 0 keeps N; the rest of a group becomes one axis.
  const ValueId rows = e.reshape(x, {0, c.attrs().get_int("num_groups"), -1});
  const Statistics s = statistics(e, rows, {2}, c.attrs().get_float("epsilon"), true);
  const ValueId normalized = e.reshape_like(e.cast(s.normalized, e.type(x).dtype), x);
  const ValueId scaled = e.mul(normalized, e.unsqueeze(c.input(1), spatial));
  c.set_output(0, e.add(scaled, e.unsqueeze(c.input(2), spatial)));
}

}  // namespace

Status add_norm_ops(OpRegistry& ops) {
  GR_TRY(add_layer_norm(ops));
  GR_TRY(add_rms_norm(ops));
  OpDef group = define("GroupNormalization", "X, scale, bias", "Y",
                       "X [N, C, ...] normalised over each of num_groups groups of channels, "
                       "times scale [C] plus bias [C].");
  group.attrs = {attr("epsilon", 1e-5), required_attr("num_groups", GR_ATTR_INT),
                 attr("stash_type", int64_t{1})};
  group.infer = infer_group_norm;
  group.decompose = decompose_group_norm;
  return ops.add(group);
}

}  // namespace gradrack
