// SPDX-License-Identifier: Apache-2.0
// Operator entries: Softmax, LogSoftmax and their gradients.
//
// Invariant: the maximum of a row is taken off before exp, so that nothing overflows. A row of -inf
// alone has no distribution and gives NaN, as in ONNX; Attention guards its masked rows itself.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

Status infer_softmax(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_TRY(normalize_axis(c.attrs().get_int("axis"), c.input(0).shape.size()).status());
  c.set_output(0, c.input(0));
  return {};
}

Status infer_softmax_grad(InferContext& c) {
  GR_TRY(want_type(c, 0, c.input(1), "gy"));
  return infer_softmax(c);
}

void decompose_softmax(DecomposeContext& c) {
  Emitter& e = c.e();
  const std::vector<int64_t> axis{c.attrs().get_int("axis")};
  const ValueId shifted = e.sub(c.input(0), e.reduce_max(c.input(0), axis, true));
  const ValueId powers = e.op("Exp", {shifted});
  c.set_output(0, e.div(powers, e.reduce_sum(powers, axis, true)));
}

void decompose_log_softmax(DecomposeContext& c) {
  Emitter& e = c.e();
  const std::vector<int64_t> axis{c.attrs().get_int("axis")};
  const ValueId shifted = e.sub(c.input(0), e.reduce_max(c.input(0), axis, true));
  const ValueId sum = e.reduce_sum(e.op("Exp", {shifted}), axis, true);
  c.set_output(0, e.sub(shifted, e.op("Log", {sum})));
}

void decompose_softmax_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId gy = c.input(0), y = c.input(1);
  const ValueId mean = e.reduce_sum(e.mul(gy, y), {c.attrs().get_int("axis")}, true);
  c.set_output(0, e.mul(y, e.sub(gy, mean)));
}

void decompose_log_softmax_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId gy = c.input(0), y = c.input(1);
  const ValueId sum = e.reduce_sum(gy, {c.attrs().get_int("axis")}, true);
  c.set_output(0, e.sub(gy, e.mul(e.op("Exp", {y}), sum)));
}

/// A softmax whose gradient is `grad_name`(gy, y).
OpDef forward_entry(const char* name, const char* doc, const char* grad_name) {
  OpDef op = define(name, "input", "output", doc);
  op.attrs = {attr("axis", int64_t{-1})};
  op.infer = infer_softmax;
  op.grad = [grad_name](GradContext& c) {
    c.set_grad(0, c.e().own(grad_name, {c.grad_output(0), c.output(0)}, c.attrs()));
  };
  return op;
}

OpDef gradient_entry(const char* name, const char* doc) {
  OpDef op = define_own(name, "gy, y", "gx", doc);
  op.attrs = {attr("axis", int64_t{-1})};
  op.infer = infer_softmax_grad;
  return op;
}

}  // namespace

Status add_softmax_ops(OpRegistry& ops) {
  OpDef softmax = forward_entry(
      "Softmax", "exp(x - max) / sum(exp(x - max)) along one axis. A row of -inf alone gives NaN.",
      "SoftmaxGrad");
  softmax.decompose = decompose_softmax;
  GR_TRY(ops.add(softmax));

  OpDef log_softmax = forward_entry(
      "LogSoftmax", "x - max - log(sum(exp(x - max))) along one axis.", "LogSoftmaxGrad");
  log_softmax.decompose = decompose_log_softmax;
  GR_TRY(ops.add(log_softmax));

  OpDef softmax_grad = gradient_entry("SoftmaxGrad", "Of Softmax: y * (gy - sum(gy * y)).");
  softmax_grad.decompose = decompose_softmax_grad;
  GR_TRY(ops.add(softmax_grad));

  OpDef log_softmax_grad =
      gradient_entry("LogSoftmaxGrad", "Of LogSoftmax: gy - exp(y) * sum(gy).");
  log_softmax_grad.decompose = decompose_log_softmax_grad;
  return ops.add(log_softmax_grad);
}

}  // namespace gradrack
