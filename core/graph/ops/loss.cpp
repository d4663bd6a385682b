// SPDX-License-Identifier: Apache-2.0
// Operator entries: SoftmaxCrossEntropyLoss, its gradient, NegativeLogLikelihoodLoss, and
// gradrack.CountTargets.
//
// Invariant: a row whose label is ignore_index adds nothing, neither to the likelihood nor to the
// uniform part of label smoothing, and its gradient is exactly 0 even where its scores are not
// finite (NUM-02, NUM-03). A label outside the classes that is not ignore_index is an error when
// the node runs.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// Attributes, scores [N, C, d...] and labels [N, d...] at inputs `first` and `first + 1`.
Status check_loss(const InferContext& c, size_t first) {
  const Type& scores = c.input(first);
  const Type& labels = c.input(first + 1);
  GR_TRY(want_dtype(c, first, Dtypes::kReal));
  if (scores.shape.size() < 2 || !scores.shape[1].is_number() || scores.shape[1].number() < 1) {
    return invalid_argument("scores must be [N, C, ...] with a number of classes, got " +
                            to_text(scores));
  }
  Shape want = scores.shape;
  want.erase(want.begin() + 1);
  if (labels.dtype != GR_INT64 && labels.dtype != GR_INT32) {
    return invalid_argument("labels must be int64 or int32, got " + to_text(labels));
  }
  GR_TRY(want_type(c, first + 1, Type{labels.dtype, want}, "labels"));
  const std::string reduction = c.attrs().get_string("reduction");
  if (reduction != "none" && reduction != "mean" && reduction != "sum") {
    return invalid_argument("reduction must be none, mean or sum, got " + reduction);
  }
  const double smoothing = c.attrs().get_float("label_smoothing");
  if (!(smoothing >= 0 && smoothing < 1)) {
    return invalid_argument("label_smoothing must be in [0, 1), got " + std::to_string(smoothing));
  }
  return {};
}

/// Type of the loss: labels' shape, or a scalar when reduced.
Type loss_type(const InferContext& c, size_t first) {
  Type type{c.input(first).dtype, {}};
  if (c.attrs().get_string("reduction") == "none") type.shape = c.input(first + 1).shape;
  return type;
}

Status infer_loss(InferContext& c) {
  GR_TRY(check_loss(c, 0));
  if (c.has_input(2)) return unsupported("weights of classes are not supported");
  if (c.output_count() > 1) {
    return unsupported("gives the loss alone: ask for one output (use LogSoftmax for log_prob)");
  }
  c.set_output(0, loss_type(c, 0));
  return {};
}

Status infer_loss_grad(InferContext& c) {  // g, scores, labels
  GR_TRY(check_loss(c, 1));
  GR_TRY(want_type(c, 0, loss_type(c, 1), "g"));
  c.set_output(0, c.input(1));
  return {};
}

/// Which labels count, or GR_NO_VALUE when all do.
ValueId counted(Emitter& e, const Attrs& attrs, ValueId labels) {
  if (!attrs.has("ignore_index")) return GR_NO_VALUE;
  const ValueId ignore = e.like(labels, static_cast<double>(attrs.get_int("ignore_index")));
  return e.op("Not", {e.op("Equal", {labels, ignore})});
}

/// Labels as indices [N, 1, d...]: 0 where ignored, C (out of range) where negative, since
/// GatherElements counts negative indices from the end.
ValueId indices(Emitter& e, ValueId labels, ValueId counts, int64_t classes) {
  const ValueId zero = e.like(labels, 0);
  ValueId safe = counts == GR_NO_VALUE ? labels : e.where(counts, labels, zero);
  safe = e.where(e.op("Less", {safe, zero}), e.like(labels, static_cast<double>(classes)), safe);
  return e.unsqueeze(safe, {1});
}

/// Number of labels that count as a scalar of `dtype`.
ValueId count_labels(Emitter& e, ValueId labels, ValueId counts, gr_dtype_t dtype) {
  if (counts == GR_NO_VALUE) counts = e.op("Equal", {labels, labels});
  return e.reduce_sum(e.cast(counts, dtype), axis_range(0, e.rank(labels)), false);
}

/// The mean's divisor: at least 1, so that the mean over nothing is 0.
ValueId divisor(Emitter& e, ValueId labels, ValueId counts, gr_dtype_t dtype) {
  return e.op("Max", {count_labels(e, labels, counts, dtype), e.constant(dtype, 1.0)});
}

void decompose_loss(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId scores = c.input(0), labels = c.input(1);
  if (!e.status().ok()) return;
  const double smoothing = c.attrs().get_float("label_smoothing");
  const std::string reduction = c.attrs().get_string("reduction");
  const ValueId counts = counted(e, c.attrs(), labels);
  const ValueId logs = e.op("LogSoftmax", {scores}, {{"axis", int64_t{1}}});
  const ValueId index = indices(e, labels, counts, e.shape(scores)[1].number());
  const ValueId picked = e.op("GatherElements", {logs, index}, {{"axis", int64_t{1}}});
  ValueId loss = e.neg(e.squeeze(picked, {1}));
  if (smoothing > 0) {
    const ValueId uniform = e.neg(e.reduce_mean(logs, {1}, false));
    loss = e.add(e.mul(loss, 1.0 - smoothing), e.mul(uniform, smoothing));
  }
  if (counts != GR_NO_VALUE) loss = e.where(counts, loss, e.like(loss, 0.0));
  if (reduction != "none") {
    const gr_dtype_t dtype = e.type(loss).dtype;
    loss = e.reduce_sum(loss, axis_range(0, e.rank(labels)), false);
    if (reduction == "mean") loss = e.div(loss, divisor(e, labels, counts, dtype));
  }
  c.set_output(0, loss);
}

/// g * (softmax - (1 - s) * one_hot - s / C), 0 where ignored; g / count for the mean.
void decompose_loss_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId scores = c.input(1), labels = c.input(2);
  if (!e.status().ok()) return;
  const int64_t classes = e.shape(scores)[1].number();
  const double smoothing = c.attrs().get_float("label_smoothing");
  const ValueId counts = counted(e, c.attrs(), labels);
  ValueId diff = e.op("Softmax", {scores}, {{"axis", int64_t{1}}});
  if (smoothing > 0) diff = e.add(diff, -smoothing / static_cast<double>(classes));
  const ValueId index = indices(e, labels, counts, classes);
  const ValueId target = e.expand_like(e.like(scores, smoothing - 1.0), index);
  diff = e.op("ScatterElements", {diff, index, target},
              {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  ValueId g = c.input(0);
  const std::string reduction = c.attrs().get_string("reduction");
  if (reduction == "mean") g = e.div(g, divisor(e, labels, counts, e.type(scores).dtype));
  if (reduction == "none") g = e.unsqueeze(g, {1});
  diff = e.mul(diff, g);
  if (counts != GR_NO_VALUE) diff = e.where(e.unsqueeze(counts, {1}), diff, e.like(diff, 0.0));
  c.set_output(0, diff);
}

std::vector<AttrDef> loss_attrs() {
  return {optional_attr("ignore_index", GR_ATTR_INT), attr("label_smoothing", 0.0),
          attr("reduction", std::string("mean"))};
}

Status add_count_targets(OpRegistry& ops) {
  OpDef count =
      define_own("CountTargets", "labels", "count",
                 "How many labels differ from ignore_index, as a scalar of `dtype` (the "
                 "precision's choice by default): the divisor of a loss that was summed.");
  count.attrs = {attr("dtype", int64_t{GR_FLOAT32}), optional_attr("ignore_index", GR_ATTR_INT)};
  count.non_differentiable = true;
  count.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kIndex));
    const auto dtype = static_cast<gr_dtype_t>(c.attrs().get_int("dtype"));
    if (!is_real(dtype)) return invalid_argument("dtype must be a floating one");
    c.set_output(0, Type{dtype, {}});
    return {};
  };
  count.decompose = [](DecomposeContext& c) {
    const ValueId labels = c.input(0);
    const ValueId counts = counted(c.e(), c.attrs(), labels);
    const auto dtype = static_cast<gr_dtype_t>(c.attrs().get_int("dtype"));
    c.set_output(0, count_labels(c.e(), labels, counts, dtype));
  };
  return ops.add(count);
}

Status infer_nll(InferContext& c) {
  GR_TRY(check_loss(c, 0));
  if (c.has_input(2)) {
    const Type weights{c.input(0).dtype, {c.input(0).shape[1]}};
    GR_TRY(want_type(c, 2, weights, "weight"));
  }
  c.set_output(0, loss_type(c, 0));
  return {};
}

/// Each label's weight, 0 where it is ignored; GR_NO_VALUE where all are 1.
ValueId label_weights(DecomposeContext& c, ValueId counts) {
  Emitter& e = c.e();
  const ValueId labels = c.input(1);
  const gr_dtype_t dtype = e.type(c.input(0)).dtype;
  if (c.input_count() < 3) {
    return counts == GR_NO_VALUE ? counts : e.cast(counts, dtype);
  }
  const ValueId safe = counts == GR_NO_VALUE ? labels : e.where(counts, labels, e.like(labels, 0));
  const ValueId weights = e.op("Gather", {c.input(2), safe});
  return counts == GR_NO_VALUE ? weights : e.where(counts, weights, e.like(weights, 0.0));
}

void decompose_nll(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId labels = c.input(1);
  if (!e.status().ok()) return;
  const std::string reduction = c.attrs().get_string("reduction");
  const ValueId counts = counted(e, c.attrs(), labels);
  const ValueId index = indices(e, labels, counts, e.shape(c.input(0))[1].number());
  const ValueId picked = e.op("GatherElements", {c.input(0), index}, {{"axis", int64_t{1}}});
  const ValueId weights = label_weights(c, counts);
  ValueId loss = e.neg(e.squeeze(picked, {1}));
  if (weights != GR_NO_VALUE) loss = e.mul(loss, weights);
  if (counts != GR_NO_VALUE) loss = e.where(counts, loss, e.like(loss, 0.0));
  if (reduction != "none") {
    const auto all = axis_range(0, e.rank(labels));
    const ValueId sum = e.reduce_sum(loss, all, false);
    const bool weighted = c.input_count() > 2;
    const ValueId by = weighted ? e.reduce_sum(weights, all, false)
                                : divisor(e, labels, counts, e.type(loss).dtype);
    loss = reduction == "mean" ? e.div(sum, by) : sum;
  }
  c.set_output(0, loss);
}

OpDef nll_op() {
  OpDef op = define("NegativeLogLikelihoodLoss", "input, target, weight?", "loss",
                    "-weight[label] * input[label] along axis 1 of log-probabilities [N, C, ...]. "
                    "Labels equal to ignore_index add nothing; the mean divides by the weights of "
                    "the others.");
  op.attrs = {optional_attr("ignore_index", GR_ATTR_INT), attr("reduction", std::string("mean"))};
  op.infer = infer_nll;
  op.decompose = decompose_nll;
  return op;
}

}  // namespace

Status add_loss_ops(OpRegistry& ops) {
  GR_TRY(add_count_targets(ops));
  GR_TRY(ops.add(nll_op()));
  OpDef loss = define("SoftmaxCrossEntropyLoss", "scores, labels, weights?", "output, log_prob?",
                      "-log softmax(scores)[label] along axis 1 of scores [N, C, ...]. "
                      "label_smoothing s (an addition "
                      "to ONNX) mixes (1 - s) of it with s times the mean over classes. Labels "
                      "equal to ignore_index "
                      "add nothing; the mean is over the others, and 0 when there are none. "
                      "weights and log_prob are "
                      "not supported.");
  loss.attrs = loss_attrs();
  loss.infer = infer_loss;
  loss.grad = [](GradContext& c) {
    c.set_grad(0, c.e().own("SoftmaxCrossEntropyLossGrad",
                            {c.grad_output(0), c.input(0), c.input(1)}, c.attrs()));
  };
  loss.decompose = decompose_loss;
  GR_TRY(ops.add(loss));

  OpDef grad = define_own("SoftmaxCrossEntropyLossGrad", "g, scores, labels", "gscores",
                          "Of SoftmaxCrossEntropyLoss: g * (softmax(scores) - (1 - s) * one_hot - "
                          "s / C), exactly 0 for ignored labels.");
  grad.attrs = loss_attrs();
  grad.infer = infer_loss_grad;
  grad.decompose = decompose_loss_grad;
  return ops.add(grad);
}

}  // namespace gradrack
