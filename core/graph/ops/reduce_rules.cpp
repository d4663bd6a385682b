// SPDX-License-Identifier: Apache-2.0
// Shared parts of reductions: see reduce_rules.hpp.
#include "core/graph/ops/reduce_rules.hpp"

#include <algorithm>
#include <numeric>

namespace gradrack {

Result<std::vector<int64_t>> reduced_axes(std::vector<int64_t> axes, bool keep_empty, size_t rank) {
  if (axes.empty() && !keep_empty) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), int64_t{0});
  }
  GR_ASSIGN(axes, normalize_axes(axes, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

Shape reduced_shape(const Shape& from, const std::vector<int64_t>& axes, bool keepdims) {
  Shape shape;
  for (size_t k = 0; k < from.size(); ++k) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k));
    if (!gone) shape.push_back(from[k]);
    if (gone && keepdims) shape.push_back(Dim(1));
  }
  return shape;
}

namespace {

Status infer_reduce(InferContext& c, Dtypes set) {
  GR_TRY(want_dtype(c, 0, set));
  std::vector<int64_t> axes;
  if (c.has_input(1)) {
    GR_ASSIGN(axes, known_numbers(c, 1, "axes"));
  }
  const Shape& from = c.input(0).shape;
  GR_ASSIGN(axes, reduced_axes(axes, c.attrs().get_int("noop_with_empty_axes") != 0, from.size()));
  const bool keepdims = c.attrs().get_int("keepdims") != 0;
  c.set_output(0, {c.input(0).dtype, reduced_shape(from, axes, keepdims)});
  return {};
}

}  // namespace

OpDef reduction(std::string name, Dtypes set, std::string doc, void (*grad)(GradContext&)) {
  OpDef op = define(std::move(name), "data, axes?", "reduced", std::move(doc));
  op.attrs = {attr("keepdims", int64_t{1}), attr("noop_with_empty_axes", int64_t{0})};
  op.infer = [set](InferContext& c) { return infer_reduce(c, set); };
  op.grad = grad;
  return op;
}

ValueId with_dims(Emitter& e, const Reduction& r, ValueId y) {
  return r.keepdims ? y : e.unsqueeze(y, r.axes);
}

ValueId mirrored(Emitter& e, ValueId x) {
  const gr_dtype_t dtype = e.type(x).dtype;
  if (is_real(dtype)) return e.neg(x);
  if (dtype == GR_BOOL) return e.op("Not", {x});
  return e.sub(dtype == GR_UINT8 ? 255.0 : -1.0, x);
}

}  // namespace gradrack
