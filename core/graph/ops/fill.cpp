// SPDX-License-Identifier: Apache-2.0
// Operator entries that make tensors from sizes and places: ConstantOfShape, Range, EyeLike, OneHot
// and Tile.
//
// All by decomposition; sizes are known while building and may hold symbols. Integer results of
// plain numbers stay known.
#include <cmath>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

constexpr int64_t kMostKnown = 4096;  // longer lists of known numbers are computed when they run

Result<gr_dtype_t> dtype_of(const Attrs& attrs, gr_dtype_t fallback) {
  const auto dtype = static_cast<gr_dtype_t>(attrs.get_int("dtype", fallback));
  if (dtype_name(dtype).rfind("dtype(", 0) != 0) return dtype;
  return invalid_argument("attribute 'dtype' is no dtype: " + std::to_string(dtype));
}

Status infer_constant_of_shape(InferContext& c) {
  GR_ASSIGN(const KnownInts shape, known_ints(c, 0, "input"));
  GR_TRY(want_rank(c, 0, 1));
  GR_ASSIGN(const gr_dtype_t dtype, dtype_of(c.attrs(), GR_FLOAT32));
  c.set_output(0, {dtype, shape});
  if (is_real(dtype) || shape.size() > 1) return {};
  const Dim count = element_count(shape);
  if (!count.is_number() || count.number() < 0 || count.number() > kMostKnown) return {};
  const Dim value(static_cast<int64_t>(c.attrs().get_float("value")));
  c.set_known(0, KnownInts(static_cast<size_t>(count.number()), value));
  return {};
}

OpDef constant_of_shape_op() {
  OpDef op = define("ConstantOfShape", "input", "output",
                    "A tensor of the shape `input` full of `value`, a number (where ONNX has a "
                    "tensor of one), in `dtype` (a gr_dtype_t number).");
  op.attrs = {attr("value", 0.0), attr("dtype", int64_t{GR_FLOAT32})};
  op.non_differentiable = true;
  op.infer = infer_constant_of_shape;
  op.decompose = [](DecomposeContext& d) {
    const auto dtype = static_cast<gr_dtype_t>(d.attrs().get_int("dtype"));
    const ValueId value = d.e().constant(dtype, d.attrs().get_float("value"));
    d.set_output(0, d.e().op("Expand", {value, d.input(0)}));
  };
  return op;
}

/// Elements of a Range of known integers.
Result<Dim> range_count(const Dim& start, const Dim& limit, const Dim& delta) {
  if (!delta.is_number()) return invalid_argument("'delta' must be a plain number");
  const int64_t step = delta.number();
  if (step == 0) return invalid_argument("'delta' must not be 0");
  const Dim span = step > 0 ? limit - start : start - limit;
  const int64_t stride = std::abs(step);
  const Dim count = (span + Dim(stride - 1)).floor_div(Dim(stride));
  return count.is_number() ? Dim(std::max<int64_t>(0, count.number())) : count;
}

Status infer_int_range(InferContext& c) {
  GR_ASSIGN(const KnownInts start, known_ints(c, 0, "start"));
  GR_ASSIGN(const KnownInts limit, known_ints(c, 1, "limit"));
  GR_ASSIGN(const KnownInts delta, known_ints(c, 2, "delta"));
  GR_ASSIGN(const Dim count, range_count(start[0], limit[0], delta[0]));
  c.set_output(0, {c.input(0).dtype, {count}});
  if (!count.is_number() || count.number() > kMostKnown) return {};
  KnownInts out;
  for (int64_t k = 0; k < count.number(); ++k) out.push_back(start[0] + Dim(k) * delta[0]);
  c.set_known(0, std::move(out));
  return {};
}

Status infer_range(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kNumber));
  for (size_t k = 0; k < 3; ++k) {
    if (!(element_count(c.input(k).shape) == Dim(1))) {
      return invalid_argument("start, limit and delta are scalars");
    }
  }
  if (!is_real(c.input(0).dtype)) return infer_int_range(c);
  double start = 0, limit = 0, delta = 0;
  if (!c.known_float(0, &start) || !c.known_float(1, &limit) || !c.known_float(2, &delta)) {
    return invalid_argument("start, limit and delta must be constants while the graph is built");
  }
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 1e9)) return invalid_argument("'delta' does not lead from start to limit");
  c.set_output(0, {c.input(0).dtype, {Dim(static_cast<int64_t>(count))}});
  return {};
}

/// start + delta * (0, 1, 2, ...); the places are a running sum of ones where the size is a symbol.
void range_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const gr_dtype_t dtype = e.type(d.input(0)).dtype;
  const auto scalar = [&](size_t k) { return e.reshape(d.input(k), std::vector<int64_t>{}); };
  ValueId places = GR_NO_VALUE;
  if (is_real(dtype)) {
    double start = 0, limit = 0, delta = 1;
    const bool known = real_number(e, d.input(0), &start) && real_number(e, d.input(1), &limit) &&
                       real_number(e, d.input(2), &delta);
    if (!known) return e.fail(unsupported("start, limit and delta must be constants"));
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    places = e.cast(e.ints(axis_range(0, static_cast<size_t>(count))), dtype);
  } else {
    const auto known = [&](size_t k) { return e.graph().value(d.input(k)).known->at(0); };
    const auto count = range_count(known(0), known(1), known(2));
    if (!count.ok()) return e.fail(count.status());
    if (count->is_number()) {
      places = e.cast(e.ints(axis_range(0, static_cast<size_t>(count->number()))), dtype);
    } else {
      // The same arithmetic on values as range_count has on dims.
      const int64_t step = known(2).number(), stride = std::abs(step);
      const ValueId low = scalar(step > 0 ? 0 : 1), high = scalar(step > 0 ? 1 : 0);
      const ValueId rounded = e.add(e.sub(high, low), static_cast<double>(stride - 1));
      const ValueId size = e.div(rounded, e.like(rounded, static_cast<double>(stride)));
      const ValueId ones = e.op("Expand", {e.like(size, 1), e.unsqueeze(size, {0})});
      places = e.op("CumSum", {ones, e.squeeze(e.ints({0}), {0})}, {{"exclusive", int64_t{1}}});
    }
  }
  d.set_output(0, e.add(e.mul(places, scalar(2)), scalar(0)));
}

OpDef range_op() {
  OpDef op = define("Range", "start, limit, delta", "output",
                    "start, start + delta, ... up to before limit. All three are known while "
                    "building; integers may hold symbols.");
  op.non_differentiable = true;
  op.infer = infer_range;
  op.decompose = range_decompose;
  return op;
}

OpDef eye_like_op() {
  OpDef op = define("EyeLike", "input", "output",
                    "A matrix of the shape of input with ones on diagonal k, else zeros, in "
                    "`dtype` (a gr_dtype_t number; the input's when left out).");
  op.attrs = {attr("k", int64_t{0}), optional_attr("dtype", GR_ATTR_INT)};
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_rank(c, 0, 2));
    GR_ASSIGN(const gr_dtype_t dtype, dtype_of(c.attrs(), c.input(0).dtype));
    c.set_output(0, {dtype, c.input(0).shape});
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const int64_t k = d.attrs().get_int("k");
    const auto dtype =
        static_cast<gr_dtype_t>(d.attrs().get_int("dtype", e.type(d.input(0)).dtype));
    const ValueId ones = e.expand_like(e.constant(GR_FLOAT32, 1.0), d.input(0));
    const auto from = [&](int64_t diagonal) {
      return e.op("Trilu", {ones, e.squeeze(e.ints({diagonal}), {0})});
    };
    d.set_output(0, e.cast(e.sub(from(k), from(k + 1)), dtype));
  };
  return op;
}

Status infer_one_hot(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kNumber));
  const KnownInts* depth = c.known(1);
  double number = 0;
  const bool real = c.known_float(1, &number);
  if ((depth == nullptr || depth->size() != 1) && !real) {
    return invalid_argument("'depth' must be one number that is known while the graph is built");
  }
  if (!(c.input(2).shape == Shape{Dim(2)})) {
    return invalid_argument("'values' must be [off, on], got " + to_text(c.input(2)));
  }
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), shape.size() + 1));
  shape.insert(shape.begin() + axis, real ? Dim(static_cast<int64_t>(number)) : (*depth)[0]);
  c.set_output(0, {c.input(2).dtype, std::move(shape)});
  return {};
}

void one_hot_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const size_t rank = e.rank(d.input(0)) + 1;
  const auto axis = normalize_axis(d.attrs().get_int("axis"), rank);
  if (!axis.ok()) return e.fail(axis.status());
  double real = 0;
  const ValueId size = real_number(e, d.input(1), &real)
                           ? e.ints({static_cast<int64_t>(real)})
                           : e.cast(e.reshape(d.input(1), std::vector<int64_t>{1}), GR_INT64);
  const ValueId index = e.cast(d.input(0), GR_INT64);
  const ValueId from_end = e.op("Less", {index, e.like(index, 0)});
  const ValueId place = e.where(from_end, e.add(index, size), index);
  const ValueId hot =
      e.op("Equal", {e.unsqueeze(place, {*axis}), places_along(e, size, *axis, rank)});
  const ValueId off = e.squeeze(slice_axis(e, d.input(2), 0, 0, 1), {0});
  const ValueId on = e.squeeze(slice_axis(e, d.input(2), 0, 1, 2), {0});
  d.set_output(0, e.where(hot, on, off));
}

OpDef one_hot_op() {
  OpDef op = define("OneHot", "indices, depth, values", "output",
                    "values [off, on]: on where the place along a new axis equals the index, else "
                    "off. A negative index counts from the end, one out of range is off "
                    "everywhere. depth is known while building.");
  op.attrs = {attr("axis", int64_t{-1})};
  op.infer = infer_one_hot;
  op.decompose = one_hot_decompose;
  return op;
}

Status infer_tile(InferContext& c) {
  GR_ASSIGN(const KnownInts repeats, known_ints(c, 1, "repeats"));
  Shape shape = c.input(0).shape;
  if (repeats.size() != shape.size()) {
    return invalid_argument("'repeats' has " + std::to_string(repeats.size()) +
                            " numbers for rank " + std::to_string(shape.size()));
  }
  for (size_t k = 0; k < shape.size(); ++k) {
    if (repeats[k].is_number() && repeats[k].number() < 0) {
      return invalid_argument("'repeats' must not be negative");
    }
    shape[k] = shape[k] * repeats[k];
  }
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

/// x with axis k repeated: a new axis before it is expanded, and both become one.
ValueId repeated(Emitter& e, ValueId x, int64_t k, ValueId times) {
  const auto rank = static_cast<int64_t>(e.rank(x));
  const ValueId apart = e.unsqueeze(x, {k});
  std::vector<ValueId> wide, joined;
  for (int64_t axis = 0; axis <= rank; ++axis) {
    wide.push_back(axis == k ? times : dim_of(e, apart, axis));
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    const ValueId dim = dim_of(e, x, axis);
    joined.push_back(axis == k ? e.mul(dim, times) : dim);
  }
  const ValueId y = e.op("Expand", {apart, shape_from(e, std::move(wide))});
  return e.op("Reshape", {y, shape_from(e, std::move(joined))}, {{"allowzero", int64_t{1}}});
}

OpDef tile_op() {
  OpDef op = define("Tile", "input, repeats", "output",
                    "The input repeated `repeats` times along each axis.");
  op.infer = infer_tile;
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    ValueId y = d.input(0);
    const KnownInts times = e.graph().value(d.input(1)).known.value_or(KnownInts());
    for (size_t k = 0; k < times.size() && e.status().ok(); ++k) {
      const auto axis = static_cast<int64_t>(k);
      if (times[k].is_one()) continue;
      const ValueId each = e.cast(slice_axis(e, d.input(1), 0, axis, axis + 1), GR_INT64);
      y = repeated(e, y, axis, each);
    }
    d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
  };
  return op;
}

}  // namespace

Status add_fill_ops(OpRegistry& ops) {
  GR_TRY(ops.add(constant_of_shape_op()));
  GR_TRY(ops.add(range_op()));
  GR_TRY(ops.add(eye_like_op()));
  GR_TRY(ops.add(one_hot_op()));
  return ops.add(tile_op());
}

}  // namespace gradrack
