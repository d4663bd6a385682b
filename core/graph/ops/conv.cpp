// SPDX-License-Identifier: Apache-2.0
// Operator entries: Conv and its two gradients, for any number of spatial axes.
//
// All three are primitives with the same attributes; the gradients to input and weight are separate
// nodes, so that they can be scheduled apart. Invariant: the three agree on one set of windows, so
// each gradient is the exact adjoint of Conv in one argument.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/window.hpp"

namespace gradrack {

namespace {

/// Checks X [N, C, ...] against W [M, C/group, ...] and gives the shape of Y [N, M, ...].
Result<Shape> conv_output(const Attrs& attrs, const Shape& x, const Shape& w) {
  if (x.size() < 3 || w.size() != x.size()) {
    return invalid_argument("needs X [N, C, spatial] and W [M, C/group, kernel] of one rank, got " +
                            to_text(x) + " and " + to_text(w));
  }
  const int64_t group = attrs.get_int("group");
  if (group < 1) return invalid_argument("group must be at least 1, got " + std::to_string(group));
  if (!(w[1] * Dim(group) == x[1])) {
    return invalid_argument("W must have C/group = " + x[1].text() + "/" + std::to_string(group) +
                            " channels, got " + w[1].text());
  }
  std::vector<int64_t> kernel;
  for (size_t k = 2; k < w.size(); ++k) {
    if (!w[k].is_number()) return invalid_argument("the kernel's sizes must be numbers");
    kernel.push_back(w[k].number());
  }
  if (!w[0].is_number() || w[0].number() % group != 0) {
    return invalid_argument("group must divide the " + w[0].text() + " output channels, got " +
                            std::to_string(group));
  }
  const auto given = attrs.get_ints("kernel_shape");
  if (!given.empty() && given != kernel) {
    return invalid_argument("kernel_shape differs from W, which is " + to_text(w));
  }
  GR_ASSIGN(const Window window, read_window(attrs, kernel));
  GR_ASSIGN(const Shape spatial, window_outputs(window, Shape(x.begin() + 2, x.end())));
  Shape out{x[0], w[0]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

Status infer_conv(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  const gr_dtype_t dtype = c.input(0).dtype;
  GR_ASSIGN(Shape out, conv_output(c.attrs(), c.input(0).shape, c.input(1).shape));
  GR_TRY(want_type(c, 1, Type{dtype, c.input(1).shape}, "W"));
  if (c.has_input(2)) GR_TRY(want_type(c, 2, Type{dtype, {out[1]}}, "B"));
  c.set_output(0, Type{dtype, std::move(out)});
  return {};
}

/// Both gradients: gy, the other factor, and the shape of what the gradient is of.
Status infer_conv_grad(InferContext& c, bool of_input) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_ASSIGN(KnownInts shape, known_ints(c, 2, "shape"));
  const gr_dtype_t dtype = c.input(0).dtype;
  const Shape& other = c.input(1).shape;
  GR_TRY(want_type(c, 1, Type{dtype, other}, of_input ? "W" : "X"));
  GR_ASSIGN(Shape y, conv_output(c.attrs(), of_input ? shape : other, of_input ? other : shape));
  GR_TRY(want_type(c, 0, Type{dtype, std::move(y)}, "gy"));
  c.set_output(0, Type{dtype, std::move(shape)});
  return {};
}

void grad_conv(GradContext& c) {
  Emitter& e = c.e();
  const ValueId gy = c.grad_output(0), x = c.input(0), w = c.input(1);
  if (c.needs(0)) c.set_grad(0, e.own("ConvInputGrad", {gy, w, e.shape_of(x)}, c.attrs()));
  if (c.needs(1)) c.set_grad(1, e.own("ConvWeightGrad", {gy, x, e.shape_of(w)}, c.attrs()));
  if (c.input_count() > 2 && c.needs(2)) {
    c.set_grad(2, e.reduce_sum(gy, all_but_channel(e.rank(x)), false));
  }
}

// The gradients are bilinear as Conv is, so theirs are the other two of the three.
void grad_conv_input_grad(GradContext& c) {  // gy, W, shape
  Emitter& e = c.e();
  const ValueId g = c.grad_output(0), gy = c.input(0), w = c.input(1);
  if (c.needs(0)) c.set_grad(0, e.op("Conv", {g, w}, c.attrs()));
  if (c.needs(1)) c.set_grad(1, e.own("ConvWeightGrad", {gy, g, e.shape_of(w)}, c.attrs()));
}

void grad_conv_weight_grad(GradContext& c) {  // gy, X, shape
  Emitter& e = c.e();
  const ValueId g = c.grad_output(0), gy = c.input(0), x = c.input(1);
  if (c.needs(0)) c.set_grad(0, e.op("Conv", {x, g}, c.attrs()));
  if (c.needs(1)) c.set_grad(1, e.own("ConvInputGrad", {gy, g, e.shape_of(x)}, c.attrs()));
}

}  // namespace

Status add_conv_ops(OpRegistry& ops) {
  OpDef conv = define("Conv", "X, W, B?", "Y",
                      "Correlation of X [N, C, spatial] with W [M, C/group, kernel], plus B "
                      "[M]: Y[n,m,p] = B[m] + sum over c, k of W[m,c,k] * X[n,c,p*stride + "
                      "k*dilation - pad].");
  conv.attrs = conv_attrs();
  conv.primitive = true;
  conv.infer = infer_conv;
  conv.grad = grad_conv;
  GR_TRY(ops.add(conv));

  OpDef input = define_own("ConvInputGrad", "gy, W, shape", "gx",
                           "Of Conv to X, whose shape is the input `shape`.");
  input.attrs = conv_attrs();
  input.primitive = true;
  input.infer = [](InferContext& c) { return infer_conv_grad(c, true); };
  input.grad = grad_conv_input_grad;
  GR_TRY(ops.add(input));

  OpDef weight = define_own("ConvWeightGrad", "gy, X, shape", "gw",
                            "Of Conv to W, whose shape is the input `shape`.");
  weight.attrs = conv_attrs();
  weight.primitive = true;
  weight.infer = [](InferContext& c) { return infer_conv_grad(c, false); };
  weight.grad = grad_conv_weight_grad;
  return ops.add(weight);
}

}  // namespace gradrack
