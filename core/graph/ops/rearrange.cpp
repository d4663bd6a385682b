// SPDX-License-Identifier: Apache-2.0
// Operator entries that move whole blocks: DepthToSpace, SpaceToDepth, ReverseSequence and
// CenterCropPad, by decomposition.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

Result<int64_t> block_of(const InferContext& c) {
  GR_TRY(want_rank(c, 0, 4));
  const int64_t block = c.attrs().get_int("blocksize");
  if (block < 1) {
    return invalid_argument("blocksize must be at least 1, got " + std::to_string(block));
  }
  return block;
}

/// dim / by, which must come out even.
Result<Dim> divided(const Dim& dim, int64_t by, const char* what) {
  const Dim part = dim.floor_div(Dim(by));
  if (part * Dim(by) == dim) return part;
  return invalid_argument(std::string(what) + " " + dim.text() + " does not divide by " +
                          std::to_string(by));
}

/// dim_of(x, axis) / by
ValueId part_of(Emitter& e, ValueId x, int64_t axis, int64_t by) {
  const ValueId dim = dim_of(e, x, axis);
  const std::vector<int64_t> number = numbers_of(e, dim);
  return number.size() == 1 ? e.ints({number[0] / by}) : e.op("Div", {dim, e.ints({by})});
}

ValueId times(Emitter& e, ValueId x, int64_t axis, int64_t by) {
  const ValueId dim = dim_of(e, x, axis);
  const std::vector<int64_t> number = numbers_of(e, dim);
  return number.size() == 1 ? e.ints({number[0] * by}) : e.mul(dim, e.ints({by}));
}

ValueId shaped(Emitter& e, ValueId x, std::vector<ValueId> dims) {
  return e.op("Reshape", {x, shape_from(e, std::move(dims))}, {{"allowzero", int64_t{1}}});
}

void depth_to_space(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0);
  const int64_t b = d.attrs().get_int("blocksize");
  const bool crd = d.attrs().get_string("mode") == "CRD";
  const ValueId n = dim_of(e, x, 0), c = part_of(e, x, 1, b * b), block = e.ints({b});
  const ValueId h = dim_of(e, x, 2), w = dim_of(e, x, 3);
  const ValueId apart =
      crd ? shaped(e, x, {n, c, block, block, h, w}) : shaped(e, x, {n, block, block, c, h, w});
  const ValueId moved = e.transpose(
      apart, crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  d.set_output(0, shaped(e, moved, {n, c, times(e, x, 2, b), times(e, x, 3, b)}));
}

void space_to_depth(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0);
  const int64_t b = d.attrs().get_int("blocksize");
  const ValueId n = dim_of(e, x, 0), c = dim_of(e, x, 1), block = e.ints({b});
  const ValueId h = part_of(e, x, 2, b), w = part_of(e, x, 3, b);
  const ValueId apart = shaped(e, x, {n, c, h, block, w, block});
  const ValueId moved = e.transpose(apart, {0, 3, 5, 1, 2, 4});
  d.set_output(0, shaped(e, moved, {n, times(e, x, 1, b * b), h, w}));
}

OpDef depth_to_space_op() {
  OpDef op = define("DepthToSpace", "input", "output",
                    "Channels [N, C, H, W] as blocks of blocksize^2 pixels: in mode DCR the "
                    "block's place is the slower part of the channel, in CRD the faster.");
  op.attrs = {required_attr("blocksize", GR_ATTR_INT), attr("mode", std::string("DCR"))};
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const int64_t b, block_of(c));
    const std::string mode = c.attrs().get_string("mode");
    if (mode != "DCR" && mode != "CRD") {
      return invalid_argument("mode must be DCR or CRD, got " + mode);
    }
    const Shape& x = c.input(0).shape;
    GR_ASSIGN(const Dim channels, divided(x[1], b * b, "the number of channels"));
    c.set_output(0, {c.input(0).dtype, {x[0], channels, x[2] * Dim(b), x[3] * Dim(b)}});
    return {};
  };
  op.decompose = depth_to_space;
  return op;
}

OpDef space_to_depth_op() {
  OpDef op = define("SpaceToDepth", "input", "output",
                    "Blocks of blocksize^2 pixels of [N, C, H, W] as channels, the block's place "
                    "the slower part.");
  op.attrs = {required_attr("blocksize", GR_ATTR_INT)};
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const int64_t b, block_of(c));
    const Shape& x = c.input(0).shape;
    GR_ASSIGN(const Dim h, divided(x[2], b, "the height"));
    GR_ASSIGN(const Dim w, divided(x[3], b, "the width"));
    c.set_output(0, {c.input(0).dtype, {x[0], x[1] * Dim(b * b), h, w}});
    return {};
  };
  op.decompose = space_to_depth;
  return op;
}

/// Place t of a sequence of length n is read from n - 1 - t, behind its end from t.
void reverse_sequence(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0), lengths = e.cast(d.input(1), GR_INT64);
  const int64_t batch = d.attrs().get_int("batch_axis"), time = d.attrs().get_int("time_axis");
  const ValueId at = places_along(e, dim_of(e, x, time), time, e.rank(x));
  std::vector<int64_t> around;
  for (size_t k = 0; k < e.rank(x); ++k) {
    if (static_cast<int64_t>(k) != batch) around.push_back(static_cast<int64_t>(k));
  }
  const ValueId length = e.unsqueeze(lengths, around);
  const ValueId back = e.sub(e.add(length, e.like(length, -1)), at);
  const ValueId from = e.where(e.op("Less", {at, length}), back, at);
  d.set_output(0, e.op("GatherElements", {x, e.expand_like(from, x)}, {{"axis", time}}));
}

OpDef reverse_sequence_op() {
  OpDef op = define("ReverseSequence", "input, sequence_lens", "Y",
                    "The first sequence_lens[b] places of each sequence along time_axis backwards, "
                    "the others as they are; batch_axis and time_axis are 0 and 1 in either "
                    "order.");
  op.attrs = {attr("batch_axis", int64_t{1}), attr("time_axis", int64_t{0})};
  op.infer = [](InferContext& c) -> Status {
    const int64_t batch = c.attrs().get_int("batch_axis"), time = c.attrs().get_int("time_axis");
    if (batch + time != 1 || batch * time != 0 || c.input(0).shape.size() < 2) {
      return invalid_argument("needs rank 2 or more, and batch_axis and time_axis 0 and 1");
    }
    GR_TRY(want_dtype(c, 1, Dtypes::kIndex));
    const Dim& count = c.input(0).shape[static_cast<size_t>(batch)];
    GR_TRY(want_type(c, 1, Type{c.input(1).dtype, {count}}, "sequence_lens"));
    return infer_like_first(c, Dtypes::kAny);
  };
  op.decompose = reverse_sequence;
  return op;
}

/// One axis of CenterCropPad: from `size` to `wanted`, the odd place at the end.
ValueId centered(Emitter& e, ValueId x, int64_t axis, int64_t size, int64_t wanted) {
  if (wanted <= size) {
    const int64_t first = (size - wanted) / 2;
    return slice_axis(e, x, axis, first, first + wanted);
  }
  const int64_t front = (wanted - size) / 2;
  return e.op("Pad", {x, e.ints({front, wanted - size - front}), static_cast<ValueId>(GR_NO_VALUE),
                      e.ints({axis})});
}

Result<std::vector<int64_t>> centered_axes(const Attrs& attrs, size_t rank) {
  const std::vector<int64_t> axes = attrs.get_ints("axes");
  return axes.empty() ? axis_range(0, rank) : normalize_axes(axes, rank);
}

OpDef center_crop_pad_op() {
  OpDef op =
      define("CenterCropPad", "input_data, shape", "output_data",
             "The middle of the input along `axes`, cut or filled up with zeros to `shape`.");
  op.attrs = {optional_attr("axes", GR_ATTR_INTS)};
  op.infer = [](InferContext& c) -> Status {
    Shape out = c.input(0).shape;
    GR_ASSIGN(const std::vector<int64_t> axes, centered_axes(c.attrs(), out.size()));
    GR_ASSIGN(const std::vector<int64_t> wanted, known_numbers(c, 1, "shape"));
    if (wanted.size() != axes.size()) {
      return invalid_argument("'shape' has " + std::to_string(wanted.size()) + " numbers for " +
                              std::to_string(axes.size()) + " axes");
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      Dim& dim = out[static_cast<size_t>(axes[k])];
      if (!dim.is_number()) return unsupported("the dim " + dim.text() + " must be a number");
      if (wanted[k] < 0) return invalid_argument("'shape' must not be negative");
      dim = Dim(wanted[k]);
    }
    c.set_output(0, {c.input(0).dtype, std::move(out)});
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const auto axes = centered_axes(d.attrs(), e.rank(d.input(0)));
    if (!axes.ok()) return e.fail(axes.status());
    const std::vector<int64_t> wanted = numbers_of(e, d.input(1));
    ValueId y = d.input(0);
    for (size_t k = 0; k < axes->size() && e.status().ok(); ++k) {
      const int64_t axis = (*axes)[k];
      y = centered(e, y, axis, e.shape(y)[static_cast<size_t>(axis)].number(), wanted[k]);
    }
    d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
  };
  return op;
}

}  // namespace

Status add_rearrange_ops(OpRegistry& ops) {
  GR_TRY(ops.add(depth_to_space_op()));
  GR_TRY(ops.add(space_to_depth_op()));
  GR_TRY(ops.add(reverse_sequence_op()));
  return ops.add(center_crop_pad_op());
}

}  // namespace gradrack
