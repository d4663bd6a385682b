// SPDX-License-Identifier: Apache-2.0
// Operator entries: Dropout and the primitive behind it, gradrack.Dropout; and
// gradrack.StochasticRound, which writes an update into bfloat16.
//
// Their numbers are a pure function of (seed, step, microbatch, stream of the node, element):
// Philox4x32-10 with key = seed and counter = (element / 4, stream, step, microbatch), lane element
// % 4. Invariant: they depend on no schedule, thread, recompute or resume, so running a node twice
// gives the same.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// The constant ratio of an ONNX Dropout; 0.5 when left out.
bool known_ratio(const Graph& graph, ValueId id, double* out) {
  *out = 0.5;
  if (id == GR_NO_VALUE) return true;
  const Value& value = graph.value(id);
  if (value.constant == nullptr || value.constant->reals.size() != 1) return false;
  *out = value.constant->reals[0];
  return true;
}

Status check_ratio(double ratio) {
  if (ratio >= 0 && ratio < 1) return {};
  return invalid_argument("ratio must be in [0, 1), got " + std::to_string(ratio));
}

Status infer_onnx_dropout(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  double ratio = 0.5;
  if (c.has_input(1) && !c.known_float(1, &ratio)) {
    return unsupported("ratio must be a constant scalar");
  }
  GR_TRY(check_ratio(ratio));
  if (c.has_input(2) && (c.known(2) == nullptr || c.known(2)->size() != 1)) {
    return unsupported(
        "training_mode must be a constant scalar: build one graph to train and one "
        "to evaluate");
  }
  if (c.attrs().has("seed")) {
    return unsupported("seed: the run's seed and the node's place in the graph give the mask");
  }
  c.set_output(0, c.input(0));
  c.set_output(1, Type{GR_BOOL, c.input(0).shape});
  return {};
}

void decompose_onnx_dropout(DecomposeContext& c) {
  Emitter& e = c.e();
  Graph& graph = e.graph();
  double ratio = 0.5;
  if (c.input_count() > 1 && !known_ratio(graph, c.input(1), &ratio)) {
    return e.fail(unsupported("Dropout: ratio must be a constant scalar"));
  }
  const bool training = c.input_count() > 2 && c.input(2) != GR_NO_VALUE &&
                        graph.value(c.input(2)).known->front().number() != 0;
  if (training && ratio > 0) {
    const Attrs attrs{{"ratio", ratio}, {"stream", graph.next_random_stream()}};
    const auto made = e.multi("gradrack", "Dropout", {c.input(0), graph.rng()}, attrs, 2);
    c.set_output(0, made[0]);
    if (c.output_count() > 1) c.set_output(1, made[1]);
    return;
  }
  c.set_output(0, e.op("Identity", {c.input(0)}));
  if (c.output_count() > 1) {
    c.set_output(1, e.expand_like(e.constant(GR_BOOL, 1), c.input(0)));
  }
}

Status infer_dropout(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_TRY(want_type(c, 1, Type{GR_INT64, {Dim(3)}}, "rng"));
  GR_TRY(check_ratio(c.attrs().get_float("ratio")));
  c.set_output(0, c.input(0));
  c.set_output(1, Type{GR_BOOL, c.input(0).shape});
  return {};
}

void grad_dropout(GradContext& c) {
  Emitter& e = c.e();
  ValueId mask = c.output(1);
  if (mask == GR_NO_VALUE) {  // not asked for: the same numbers again
    mask = e.multi("gradrack", "Dropout", {c.input(0), c.input(1)}, c.attrs(), 2)[1];
  }
  const ValueId scaled = e.mul(c.grad_output(0), 1.0 / (1.0 - c.attrs().get_float("ratio")));
  c.set_grad(0, e.where(mask, scaled, e.like(scaled, 0.0)));
}

enum RoundInput { kX, kRng, kOld, kGate };

Status infer_stochastic_round(InferContext& c) {
  GR_TRY(want_dtype(c, kX, Dtypes::kReal));
  GR_TRY(want_type(c, kX, Type{GR_FLOAT32, c.input(kX).shape}, "x"));
  GR_TRY(want_type(c, kRng, Type{GR_INT64, {Dim(3)}}, "rng"));
  const Type rounded{GR_BFLOAT16, c.input(kX).shape};
  if (c.has_input(kOld) != c.has_input(kGate)) {
    return invalid_argument("old and ok go together: what to keep, and whether to round");
  }
  if (c.has_input(kOld)) {
    GR_TRY(want_type(c, kOld, rounded, "old"));
    GR_TRY(want_type(c, kGate, Type{GR_BOOL, {}}, "ok"));
  }
  c.set_output(0, rounded);
  return {};
}

Status add_stochastic_round(OpRegistry& ops) {
  OpDef round = define_own(
      "StochasticRound", "x, rng, old?, ok?", "y",
      "float32 to bfloat16, up with the probability of the distance: the upper 16 bits of (bits of "
      "x + r), where r is the upper half of the number that gradrack.Dropout would draw for the "
      "element. A finite x stays finite, infinities stay, NaN stays one. old where ok is false.");
  round.attrs = {required_attr("stream", GR_ATTR_INT)};
  round.primitive = true;
  round.non_differentiable = true;
  round.infer = infer_stochastic_round;
  return ops.add(round);
}

}  // namespace

Status add_random_ops(OpRegistry& ops) {
  GR_TRY(add_stochastic_round(ops));
  OpDef onnx = define("Dropout", "data, ratio?, training_mode?", "output, mask?",
                      "In training, each element is 0 with probability ratio (0.5 when left "
                      "out), otherwise divided by 1 - ratio; else the data. ratio and "
                      "training_mode are constants.");
  onnx.attrs = {optional_attr("seed", GR_ATTR_INT)};
  onnx.infer = infer_onnx_dropout;
  onnx.decompose = decompose_onnx_dropout;
  GR_TRY(ops.add(onnx));

  OpDef dropout = define_own("Dropout", "data, rng", "output, mask?",
                             "mask ? data / (1 - ratio) : 0; mask is true where Philox4x32-10 of "
                             "key rng[0] and counter (element/4, stream, rng[1], rng[2]), lane "
                             "element%4, gives a uniform number >= ratio.");
  dropout.attrs = {required_attr("ratio", GR_ATTR_FLOAT), required_attr("stream", GR_ATTR_INT)};
  dropout.primitive = true;
  dropout.infer = infer_dropout;
  dropout.grad = grad_dropout;
  return ops.add(dropout);
}

}  // namespace gradrack
