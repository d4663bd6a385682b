// SPDX-License-Identifier: Apache-2.0
// Operator entry: TopK.
//
// Sorting is a primitive: no sequence of whole-tensor steps does it well. Invariant: one order on
// every backend, by value and then by place, with NaN above all numbers.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

Status infer_top_k(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kNumber));
  GR_ASSIGN(const KnownInts k, known_ints(c, 1, "K"));
  if (k.size() != 1) return invalid_argument("'K' must be one number");
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), shape.size()));
  Dim& size = shape[static_cast<size_t>(axis)];
  const bool numbers = k[0].is_number() && size.is_number();
  if ((numbers && k[0].number() > size.number()) || (k[0].is_number() && k[0].number() < 0)) {
    return invalid_argument("K is " + k[0].text() + " of an axis of " + size.text());
  }
  size = k[0];
  c.set_output(0, {c.input(0).dtype, shape});
  c.set_output(1, {GR_INT64, std::move(shape)});
  return {};
}

}  // namespace

Status add_order_by_ops(OpRegistry& ops) {
  OpDef op = define("TopK", "X, K", "Values, Indices",
                    "The K largest elements (largest = 0: smallest) along `axis` and their places, "
                    "best first; of equal ones the first comes first, NaN counts as largest. "
                    "sorted = 0 may give any order and gives this one.");
  op.attrs = {attr("axis", int64_t{-1}), attr("largest", int64_t{1}), attr("sorted", int64_t{1})};
  op.primitive = true;
  op.infer = infer_top_k;
  op.grad = [](GradContext& g) {
    if (!g.needs(0) || g.grad_output(0) == GR_NO_VALUE) return;
    if (g.output_count() < 2) {
      return g.e().fail(unsupported("the gradient of TopK needs its output Indices"));
    }
    const Attrs attrs{{"axis", g.attrs().get_int("axis")}, {"reduction", std::string("add")}};
    g.set_grad(0, g.e().op("ScatterElements",
                           {zeros_like(g.e(), g.input(0)), g.output(1), g.grad_output(0)}, attrs));
  };
  return ops.add(std::move(op));
}

}  // namespace gradrack
