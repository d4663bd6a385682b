// SPDX-License-Identifier: Apache-2.0
// Operator entry: gradrack.PadMode, the forms of ONNX's Pad that Pad itself leaves out: reflect,
// edge, wrap, and pads below 0.
//
// Each axis is one Slice, or one Gather at places that are known while building. Pad stays the
// primitive that backends have: the place of a constant is all that it knows.
#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

struct AxisPads {
  std::vector<int64_t> axes, begin, end;
};

Result<AxisPads> axis_pads(const std::vector<int64_t>& pads, std::vector<int64_t> axes,
                           size_t rank) {
  GR_ASSIGN(axes, normalize_axes(axes, rank));
  const size_t half = axes.size();
  if (pads.size() != 2 * half) {
    return invalid_argument("'pads' has " + std::to_string(pads.size()) + " numbers for " +
                            std::to_string(half) + " axes: wanted a begin and an end for each");
  }
  const auto middle = pads.begin() + static_cast<int64_t>(half);
  return AxisPads{std::move(axes), {pads.begin(), middle}, {middle, pads.end()}};
}

/// The place that place `at` of an axis of `size` is read from.
int64_t source_of(const std::string& mode, int64_t at, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  const int64_t period = mode == "wrap" ? size : std::max<int64_t>(1, 2 * (size - 1));
  const int64_t in = ((at % period) + period) % period;
  return in < size ? in : period - in;
}

Status infer_pad_mode(InferContext& c) {
  const std::string mode = c.attrs().get_string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return invalid_argument("mode must be constant, reflect, edge or wrap, got " + mode);
  }
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const std::vector<int64_t> numbers, known_numbers(c, 1, "pads"));
  std::vector<int64_t> axes = axis_range(0, shape.size());
  if (c.has_input(3)) {
    GR_ASSIGN(axes, known_numbers(c, 3, "axes"));
  }
  if (c.has_input(2) && c.input(2).dtype != c.input(0).dtype) {
    return invalid_argument("'constant_value' must have the dtype of data");
  }
  GR_ASSIGN(const AxisPads pads, axis_pads(numbers, axes, shape.size()));
  for (size_t k = 0; k < pads.axes.size(); ++k) {
    Dim& dim = shape[static_cast<size_t>(pads.axes[k])];
    const bool grows = pads.begin[k] > 0 || pads.end[k] > 0;
    if (mode != "constant" && grows && (!dim.is_number() || dim.number() == 0)) {
      return unsupported("mode '" + mode + "' needs numbers for the padded dims, got " +
                         dim.text());
    }
    dim = dim + Dim(pads.begin[k] + pads.end[k]);
    if (dim.is_number() && dim.number() < 0) {
      return invalid_argument("the pads take more than axis " + std::to_string(pads.axes[k]) +
                              " has");
    }
  }
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

/// x cut where the pads are below 0; the pads that are left.
ValueId cut(Emitter& e, ValueId x, AxisPads* pads) {
  for (size_t k = 0; k < pads->axes.size(); ++k) {
    int64_t &begin = pads->begin[k], &end = pads->end[k];
    if (begin >= 0 && end >= 0) continue;
    x = slice_axis(e, x, pads->axes[k], std::max<int64_t>(0, -begin), end < 0 ? end : INT64_MAX);
    begin = std::max<int64_t>(0, begin);
    end = std::max<int64_t>(0, end);
  }
  return x;
}

void pad_mode(DecomposeContext& d) {
  Emitter& e = d.e();
  ValueId x = d.input(0);
  const std::string mode = d.attrs().get_string("mode");
  const bool has_axes = d.input_count() > 3;
  const auto read =
      axis_pads(numbers_of(e, d.input(1)),
                has_axes ? numbers_of(e, d.input(3)) : axis_range(0, e.rank(x)), e.rank(x));
  if (!read.ok()) return e.fail(read.status());
  AxisPads pads = *read;
  x = cut(e, x, &pads);
  if (mode == "constant") {
    std::vector<int64_t> both = pads.begin;
    both.insert(both.end(), pads.end.begin(), pads.end.end());
    ValueId value = d.input_count() > 2 ? d.input(2) : static_cast<ValueId>(GR_NO_VALUE);
    if (value != GR_NO_VALUE) value = e.reshape(value, std::vector<int64_t>{});
    return d.set_output(0, e.op("Pad", {x, e.ints(both), value, e.ints(pads.axes)}));
  }
  for (size_t k = 0; k < pads.axes.size() && e.status().ok(); ++k) {
    if (pads.begin[k] == 0 && pads.end[k] == 0) continue;
    const int64_t size = e.shape(x)[static_cast<size_t>(pads.axes[k])].number();
    std::vector<int64_t> places;
    for (int64_t at = -pads.begin[k]; at < size + pads.end[k]; ++at) {
      places.push_back(source_of(mode, at, size));
    }
    x = e.op("Gather", {x, e.ints(places)}, {{"axis", pads.axes[k]}});
  }
  d.set_output(0, x == d.input(0) ? e.op("Identity", {x}) : x);
}

}  // namespace

Status add_pad_mode_ops(OpRegistry& ops) {
  OpDef op = define_own("PadMode", "data, pads, constant_value?, axes?", "output",
                        "Pad of ONNX in all its forms: mode constant, reflect (without the edge "
                        "itself), edge or wrap; pads below 0 cut first.");
  op.attrs = {attr("mode", std::string("constant"))};
  op.infer = infer_pad_mode;
  op.decompose = pad_mode;
  return ops.add(std::move(op));
}

}  // namespace gradrack
