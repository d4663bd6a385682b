// SPDX-License-Identifier: Apache-2.0
// Operator entries: CumSum and CumProd, by decomposition.
//
// A running sum over n elements is log2(n) sums of the tensor with itself moved by 1, 2, 4, ...
// places: whole-tensor steps that every backend has, in one order on all of them. How many steps
// that is a symbol does not say: there, each element is a sum over a triangle of the others.
#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

Status infer_scan(InferContext& c) {
  GR_ASSIGN(const std::vector<int64_t> axis, known_numbers(c, 1, "axis"));
  if (axis.size() != 1) return invalid_argument("'axis' must be one number");
  GR_TRY(normalize_axis(axis[0], c.input(0).shape.size()).status());
  return infer_like_first(c, Dtypes::kNumber);
}

struct Scan {
  const char* join;
  const char* reduce;
  double neutral;
};

/// x moved `by` places along `axis`, the neutral element in front.
ValueId moved(Emitter& e, const Scan& scan, ValueId x, int64_t axis, int64_t by, int64_t size) {
  const ValueId kept = slice_axis(e, x, axis, 0, size - by);
  const ValueId front = e.expand_like(e.like(x, scan.neutral), slice_axis(e, x, axis, 0, by));
  return e.op("Concat", {front, kept}, {{"axis", axis}});
}

/// y[..., i] = the join of x[..., j] over the j that come before i: n * n elements a row.
ValueId scanned_by_triangle(Emitter& e, const Scan& scan, ValueId x, size_t axis,
                            const Attrs& attrs) {
  std::vector<int64_t> last = axis_range(0, e.rank(x));
  std::rotate(last.begin() + long(axis), last.begin() + long(axis) + 1, last.end());
  std::vector<int64_t> back(last.size());
  for (size_t k = 0; k < last.size(); ++k) back[static_cast<size_t>(last[k])] = int64_t(k);

  const int64_t reverse = attrs.get_int("reverse") != 0 ? 1 : 0;
  const int64_t diagonal = attrs.get_int("exclusive") == 0 ? 0 : reverse != 0 ? 1 : -1;
  const ValueId rows = e.transpose(x, last);
  const ValueId size = e.op("Shape", {rows}, {{"start", int64_t{-1}}});
  const ValueId square = e.op("Concat", {size, size}, {{"axis", int64_t{0}}});
  const ValueId ones = e.op("Expand", {e.constant(GR_FLOAT32, 1.0), square});
  const ValueId triangle =
      e.op("Trilu", {ones, e.squeeze(e.ints({diagonal}), {0})}, {{"upper", reverse}});
  const ValueId before = e.op("Greater", {triangle, e.constant(GR_FLOAT32, 0.0)});
  const ValueId joined = e.where(before, e.unsqueeze(rows, {-2}), e.like(x, scan.neutral));
  const ValueId y = e.op(scan.reduce, {joined, e.ints({-1})}, {{"keepdims", int64_t{0}}});
  return e.transpose(y, back);
}

ValueId scanned(Emitter& e, const Scan& scan, ValueId x, int64_t axis, const Attrs& attrs) {
  const Dim dim = e.shape(x)[static_cast<size_t>(axis)];
  if (!dim.is_number()) return scanned_by_triangle(e, scan, x, static_cast<size_t>(axis), attrs);
  const int64_t size = dim.number();
  const bool reverse = attrs.get_int("reverse") != 0;
  const auto turned = [&](ValueId v) {
    return reverse ? slice_axis(e, v, axis, -1, INT64_MIN, -1) : v;
  };
  ValueId y = turned(x);
  if (attrs.get_int("exclusive") != 0 && size > 0) y = moved(e, scan, y, axis, 1, size);
  for (int64_t by = 1; by < size && e.status().ok(); by *= 2) {
    y = e.op(scan.join, {y, moved(e, scan, y, axis, by, size)});
  }
  return turned(y);
}

int64_t axis_of(Emitter& e, ValueId axis, ValueId x) {
  const std::vector<int64_t> numbers = numbers_of(e, axis);
  const auto at = normalize_axis(numbers.empty() ? 0 : numbers[0], e.rank(x));
  if (!at.ok()) e.fail(at.status());
  return at.ok() ? *at : 0;
}

OpDef scan_op(const char* name, std::string doc, Scan scan) {
  OpDef op = define(name, "x, axis", "y", std::move(doc));
  op.attrs = {attr("exclusive", int64_t{0}), attr("reverse", int64_t{0})};
  op.infer = infer_scan;
  op.decompose = [scan](DecomposeContext& d) {
    Emitter& e = d.e();
    const int64_t axis = axis_of(e, d.input(1), d.input(0));
    if (!e.status().ok()) return;
    const ValueId y = scanned(e, scan, d.input(0), axis, d.attrs());
    d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
  };
  return op;
}

}  // namespace

Status add_scan_ops(OpRegistry& ops) {
  OpDef sum = scan_op("CumSum",
                      "Running sums along `axis`: of the elements so far, without the element "
                      "itself when exclusive is 1, from the end when reverse is 1.",
                      {"Add", "ReduceSum", 0.0});
  sum.grad = [](GradContext& g) {  // each element goes into all sums from it on
    if (!g.needs(0)) return;
    Attrs attrs = g.attrs();
    attrs.set("reverse", int64_t{attrs.get_int("reverse") == 0});
    g.set_grad(0, g.e().op("CumSum", {g.grad_output(0), g.input(1)}, attrs));
  };
  GR_TRY(ops.add(std::move(sum)));
  return ops.add(scan_op("CumProd", "Running products along `axis`, as CumSum has sums.",
                         {"Mul", "ReduceProd", 1.0}));
}

}  // namespace gradrack
