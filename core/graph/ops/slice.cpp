// SPDX-License-Identifier: Apache-2.0
// Operator entries that cut and extend along axes: Slice with its gradient, and Pad. Concat and
// Split are in concat.cpp.
//
// Bounds may be symbolic ("the first `time` rows"). Numbers are clamped as in ONNX; a symbolic
// bound is taken to lie within its axis, which kernels check once numbers are known.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

Status add_concat_ops(OpRegistry& ops);  // concat.cpp

namespace {

// Bounds from there on mean "to the end": exporters write 2^63 - 1, 2^31 - 1 or 10^9.
constexpr int64_t kFar = 1'000'000'000;

/// The range of one axis.
struct Range {
  Dim start, end;
  int64_t step = 1;
};

/// A bound as a position, with the far ends of either direction.
Dim position(const Dim& bound, const Dim& size, int64_t step) {
  const Dim first = step > 0 ? Dim(0) : Dim(-1);
  const Dim last = step > 0 ? size : size - Dim(1);
  if (!bound.is_number()) return bound;
  const int64_t n = bound.number();
  if (n >= kFar) return last;
  if (n <= -kFar) return first;
  return n < 0 ? size + bound : bound;
}

int64_t clamped(const Dim& at, int64_t low, int64_t high) {
  return std::clamp(at.number(), low, std::max(low, high));
}

Dim range_size(const Range& range, const Dim& size) {
  Dim start = position(range.start, size, range.step), end = position(range.end, size, range.step);
  if (size.is_number() && start.is_number() && end.is_number()) {
    const int64_t n = size.number();
    const bool up = range.step > 0;
    start = Dim(up ? clamped(start, 0, n) : clamped(start, n > 0 ? 0 : -1, n - 1));
    end = Dim(up ? clamped(end, 0, n) : clamped(end, -1, n - 1));
  }
  const Dim length = range.step > 0 ? end - start : start - end;
  const int64_t step = std::abs(range.step);
  const Dim count = (length + Dim(step - 1)).floor_div(Dim(step));
  return count.is_number() ? Dim(std::max<int64_t>(0, count.number())) : count;
}

/// Reads starts, ends, axes and steps from input `first` on.
Status read_ranges(const InferContext& c, size_t first, const Shape& shape,
                   std::vector<int64_t>* axes, std::vector<Range>* ranges) {
  GR_ASSIGN(const KnownInts starts, known_ints(c, first, "starts"));
  GR_ASSIGN(const KnownInts ends, known_ints(c, first + 1, "ends"));
  for (size_t k = 0; k < starts.size(); ++k) axes->push_back(static_cast<int64_t>(k));
  if (c.has_input(first + 2)) {
    GR_ASSIGN(*axes, known_numbers(c, first + 2, "axes"));
  }
  std::vector<int64_t> steps(starts.size(), 1);
  if (c.has_input(first + 3)) {
    GR_ASSIGN(steps, known_numbers(c, first + 3, "steps"));
  }
  GR_ASSIGN(*axes, normalize_axes(*axes, shape.size()));
  if (ends.size() != starts.size() || axes->size() != starts.size() ||
      steps.size() != starts.size()) {
    return invalid_argument(
        fmt::format("{} starts, {} ends, {} axes and {} steps: wanted as many "
                    "of each",
                    starts.size(), ends.size(), axes->size(), steps.size()));
  }
  for (size_t k = 0; k < starts.size(); ++k) {
    if (steps[k] == 0) return invalid_argument("a step of 0");
    ranges->push_back({starts[k], ends[k], steps[k]});
  }
  return {};
}

Result<Shape> sliced_shape(const InferContext& c, size_t first, Shape shape) {
  std::vector<int64_t> axes;
  std::vector<Range> ranges;
  GR_TRY(read_ranges(c, first, shape, &axes, &ranges));
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& dim = shape[static_cast<size_t>(axes[k])];
    dim = range_size(ranges[k], dim);
  }
  return shape;
}

/// Known contents of a slice of a vector.
void keep_known_slice(InferContext& c, const Shape& shape) {
  const KnownInts* known = c.known(0);
  if (known == nullptr || c.input(0).shape.size() != 1 || !shape[0].is_number()) return;
  std::vector<int64_t> axes;
  std::vector<Range> ranges;
  if (!read_ranges(c, 1, c.input(0).shape, &axes, &ranges).ok() || ranges.size() != 1) return;
  const auto size = static_cast<int64_t>(known->size());
  const Dim start = position(ranges[0].start, Dim(size), ranges[0].step);
  if (!start.is_number()) return;
  KnownInts out;
  int64_t at = ranges[0].step > 0 ? clamped(start, 0, size) : clamped(start, 0, size - 1);
  for (int64_t k = 0; k < shape[0].number(); ++k, at += ranges[0].step) {
    out.push_back((*known)[static_cast<size_t>(at)]);
  }
  c.set_known(0, std::move(out));
}

ValueId optional_input(GradContext& g, size_t k) {
  return k < g.input_count() ? g.input(k) : static_cast<ValueId>(GR_NO_VALUE);
}

OpDef slice_op() {
  OpDef op = define("Slice", "data, starts, ends, axes?, steps?", "output",
                    "Elements from starts to before ends by steps along axes; negative bounds "
                    "count from the end, negative steps go backwards. Bounds are known while "
                    "building; a symbolic one lies within its axis.");
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const Shape shape, sliced_shape(c, 1, c.input(0).shape));
    c.set_output(0, {c.input(0).dtype, shape});
    keep_known_slice(c, shape);
    return {};
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    g.set_grad(0, g.e().own("SliceGrad", {g.grad_output(0), g.e().shape_of(g.input(0)), g.input(1),
                                          g.input(2), optional_input(g, 3), optional_input(g, 4)}));
  };
  return op;
}

OpDef slice_grad_op() {
  OpDef op = define_own("SliceGrad", "gy, shape, starts, ends, axes?, steps?", "gx",
                        "Zeros of the given shape with gy put where Slice took its elements.");
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const KnownInts shape, known_ints(c, 1, "shape"));
    GR_ASSIGN(const Shape taken, sliced_shape(c, 2, shape));
    if (!(taken == c.input(0).shape)) {
      return invalid_argument("the slice is " + to_text(taken) + ", gy is " +
                              to_text(c.input(0).shape));
    }
    c.set_output(0, {c.input(0).dtype, shape});
    return {};
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    g.set_grad(0, g.e().op("Slice", {g.grad_output(0), g.input(2), g.input(3), optional_input(g, 4),
                                     optional_input(g, 5)}));
  };
  return op;
}

/// Pads per axis, begin and end, from the inputs of Pad.
struct Pads {
  std::vector<int64_t> axes, begin, end;
};

Result<Pads> split_pads(std::vector<int64_t> pads, std::vector<int64_t> axes, bool has_axes,
                        size_t rank) {
  if (!has_axes) {
    for (size_t k = 0; k < rank; ++k) axes.push_back(static_cast<int64_t>(k));
  }
  GR_ASSIGN(axes, normalize_axes(axes, rank));
  if (pads.size() != 2 * axes.size()) {
    return invalid_argument(
        fmt::format("'pads' has {} entries, wanted {}: a begin and an end for "
                    "each of {} axes",
                    pads.size(), 2 * axes.size(), axes.size()));
  }
  for (const int64_t pad : pads) {
    if (pad < 0) return unsupported("negative pads are not supported: use Slice to cut");
  }
  const auto half = pads.begin() + static_cast<int64_t>(axes.size());
  return Pads{std::move(axes), {pads.begin(), half}, {half, pads.end()}};
}

Status infer_pad(InferContext& c) {
  const std::string mode = c.attrs().get_string("mode");
  if (mode != "constant") {
    return unsupported("mode '" + mode + "' is not supported, only 'constant' is");
  }
  GR_ASSIGN(const std::vector<int64_t> numbers, known_numbers(c, 1, "pads"));
  if (c.has_input(2)) GR_TRY(want_rank(c, 2, 0));
  if (c.has_input(2) && c.input(2).dtype != c.input(0).dtype) {
    return invalid_argument("'constant_value' must have the dtype of data");
  }
  std::vector<int64_t> axes;
  if (c.has_input(3)) {
    GR_ASSIGN(axes, known_numbers(c, 3, "axes"));
  }
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const Pads pads, split_pads(numbers, axes, c.has_input(3), shape.size()));
  for (size_t k = 0; k < pads.axes.size(); ++k) {
    Dim& dim = shape[static_cast<size_t>(pads.axes[k])];
    dim = dim + Dim(pads.begin[k] + pads.end[k]);
  }
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

void pad_grad(GradContext& g) {
  Emitter& e = g.e();
  const bool has_axes = optional_input(g, 3) != GR_NO_VALUE;
  const std::vector<int64_t> axes = has_axes ? numbers_of(e, g.input(3)) : std::vector<int64_t>();
  const auto pads = split_pads(numbers_of(e, g.input(1)), axes, has_axes, e.rank(g.input(0)));
  if (!pads.ok()) return e.fail(pads.status());
  std::vector<int64_t> ends;
  for (const int64_t pad : pads->end) ends.push_back(pad == 0 ? INT64_MAX : -pad);
  const ValueId inner =
      e.op("Slice", {g.grad_output(0), e.ints(pads->begin), e.ints(ends), e.ints(pads->axes)});
  if (g.needs(0)) g.set_grad(0, inner);
  if (optional_input(g, 2) == GR_NO_VALUE || !g.needs(2)) return;
  // What is not inner came from the constant.
  std::vector<int64_t> all;
  for (size_t k = 0; k < e.rank(inner); ++k) all.push_back(static_cast<int64_t>(k));
  g.set_grad(2, e.sub(e.reduce_sum(g.grad_output(0), all, false), e.reduce_sum(inner, all, false)));
}

OpDef pad_op() {
  OpDef op = define("Pad", "data, pads, constant_value?, axes?", "output",
                    "data with `pads` elements of constant_value (0) before and after each of "
                    "axes. Mode 'constant' alone, and no negative pads.");
  op.attrs = {attr("mode", std::string("constant"))};
  op.primitive = true;
  op.infer = infer_pad;
  op.grad = pad_grad;
  return op;
}

}  // namespace

Status add_slice_ops(OpRegistry& ops) {
  GR_TRY(ops.add(slice_op()));
  GR_TRY(ops.add(slice_grad_op()));
  GR_TRY(ops.add(pad_op()));
  return add_concat_ops(ops);
}

}  // namespace gradrack
