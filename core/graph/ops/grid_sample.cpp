// SPDX-License-Identifier: Apache-2.0
// Operator entries: GridSample and AffineGrid, by decomposition: gathers of the neighbours of each
// point, times weights that are differentiable in the point.
//
// Spatial sizes of X are numbers. Invariant: an index that is read lies within X; what lies outside
// is folded back, or read somewhere and taken for 0.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

bool is_one_of(const std::string& text, std::initializer_list<const char*> all) {
  for (const char* each : all) {
    if (text == each) return true;
  }
  return false;
}

Status infer_grid_sample(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kReal));
  const Shape &x = c.input(0).shape, &grid = c.input(1).shape;
  if (!is_one_of(c.attrs().get_string("mode"), {"linear", "nearest", "cubic"}) ||
      !is_one_of(c.attrs().get_string("padding_mode"), {"zeros", "border", "reflection"})) {
    return invalid_argument(
        "mode is linear, nearest or cubic, padding_mode zeros, border or "
        "reflection");
  }
  if (x.size() < 3 || grid.size() != x.size() || !(grid[0] == x[0]) ||
      !(grid.back() == Dim(static_cast<int64_t>(x.size()) - 2))) {
    return invalid_argument("needs X [N, C, spatial] and grid [N, output, number of spatial axes]");
  }
  Shape out{x[0], x[1]};
  for (size_t k = 2; k < x.size(); ++k) {
    if (!x[k].is_number() || x[k].number() < 1) {
      return unsupported("spatial sizes of X must be numbers, got " + x[k].text());
    }
    out.push_back(grid[k - 1]);
  }
  c.set_output(0, {c.input(0).dtype, std::move(out)});
  return {};
}

/// A neighbour along one axis: its place as int64, its weight, and where it lies inside.
struct Tap {
  ValueId place = GR_NO_VALUE;
  ValueId weight = GR_NO_VALUE;  // left out: 1
  ValueId inside = GR_NO_VALUE;  // left out: everywhere
};

class Sampler {
 public:
  Sampler(Emitter& e, const Attrs& attrs)
      : e_(e),
        mode_(attrs.get_string("mode")),
        padding_(attrs.get_string("padding_mode")),
        aligned_(attrs.get_int("align_corners") != 0) {}

  /// Neighbours of `at` (-1 to 1 over the axis) along an axis of `size`.
  std::vector<Tap> taps(ValueId at, int64_t size) {
    const auto n = static_cast<double>(size);
    ValueId x = e_.add(at, 1.0);
    x = aligned_ ? e_.mul(x, (n - 1) / 2) : e_.mul(e_.add(e_.mul(x, n), -1.0), 0.5);
    if (mode_ == "nearest") x = e_.op("Round", {x});
    x = padded(x, size);
    if (mode_ == "nearest") return {tap(x, GR_NO_VALUE, size)};
    const ValueId low = e_.op("Floor", {x});
    const ValueId t = e_.sub(x, low);
    if (mode_ == "linear") return {tap(low, e_.sub(1.0, t), size), tap(e_.add(low, 1.0), t, size)};
    return {tap(e_.add(low, -1.0), outer(e_.add(t, 1.0)), size), tap(low, inner(t), size),
            tap(e_.add(low, 1.0), inner(e_.sub(1.0, t)), size),
            tap(e_.add(low, 2.0), outer(e_.sub(2.0, t)), size)};
  }

 private:
  /// Coordinates outside, folded back as the padding has it.
  ValueId padded(ValueId x, int64_t size) {
    const double last = static_cast<double>(size - 1);
    if (padding_ == "zeros") return x;
    if (padding_ == "border") return e_.op("Clip", {x, e_.like(x, 0.0), e_.like(x, last)});
    const double low = aligned_ ? 0.0 : -0.5, span = aligned_ ? last : last + 1;
    if (span == 0) return e_.mul(x, 0.0);
    const ValueId from = e_.op("Abs", {e_.add(x, -low)});
    const ValueId turns = e_.op("Floor", {e_.mul(from, 1 / (2 * span))});
    const ValueId rest = e_.sub(from, e_.mul(turns, 2 * span));
    const ValueId back = e_.op("Min", {rest, e_.sub(2 * span, rest)});
    return e_.add(back, low);
  }

  Tap tap(ValueId place, ValueId weight, int64_t size) {
    Tap made;
    made.weight = weight;
    if (padding_ == "reflection") place = padded(place, size);
    const ValueId zero = e_.like(place, 0.0);
    const ValueId last = e_.like(place, static_cast<double>(size - 1));
    if (padding_ == "zeros") {
      made.inside = e_.op(
          "And", {e_.op("GreaterOrEqual", {place, zero}), e_.op("LessOrEqual", {place, last})});
    }
    made.place = e_.cast(e_.op("Clip", {place, zero, last}), GR_INT64);
    return made;
  }

  // Keys' cubic with a = -0.75.
  ValueId inner(ValueId t) {  // |t| <= 1: ((a + 2) t - (a + 3)) t^2 + 1
    return e_.add(e_.mul(e_.mul(t, t), e_.add(e_.mul(t, 1.25), -2.25)), 1.0);
  }
  ValueId outer(ValueId t) {  // 1 <= |t| <= 2: a ((t - 5) t + 8) t - 4 a
    const ValueId p = e_.add(e_.mul(e_.add(t, -5.0), t), 8.0);
    return e_.add(e_.mul(e_.mul(p, t), -0.75), 3.0);
  }

  Emitter& e_;
  std::string mode_, padding_;
  bool aligned_;
};

ValueId both(Emitter& e, ValueId a, ValueId b, const char* op) {
  if (a == GR_NO_VALUE) return b;
  return b == GR_NO_VALUE ? a : e.op(op, {a, b});
}

/// The neighbours in all axes: those of the first axes with each of the next one.
std::vector<Tap> crossed(Emitter& e, const std::vector<Tap>& a, const std::vector<Tap>& b,
                         int64_t size) {
  std::vector<Tap> out;
  for (const Tap& x : a) {
    for (const Tap& y : b) {
      const ValueId place = e.add(e.mul(x.place, e.like(x.place, double(size))), y.place);
      out.push_back(
          {place, both(e, x.weight, y.weight, "Mul"), both(e, x.inside, y.inside, "And")});
    }
  }
  return out;
}

/// What `taps` [N, P] read of x [N, C, all places], weighted and added: [N, C, P].
ValueId read(Emitter& e, ValueId x, const std::vector<Tap>& taps) {
  ValueId sum = GR_NO_VALUE;
  for (const Tap& tap : taps) {
    const ValueId shape =
        shape_from(e, {dim_of(e, x, 0), dim_of(e, x, 1), dim_of(e, tap.place, 1)});
    const ValueId index = e.op("Expand", {e.unsqueeze(tap.place, {1}), shape});
    ValueId y = e.op("GatherElements", {x, index}, {{"axis", int64_t{2}}});
    if (tap.weight != GR_NO_VALUE) y = e.mul(y, e.unsqueeze(tap.weight, {1}));
    if (tap.inside != GR_NO_VALUE) y = e.where(e.unsqueeze(tap.inside, {1}), y, e.like(y, 0.0));
    sum = sum == GR_NO_VALUE ? y : e.add(sum, y);
  }
  return sum;
}

void decompose_grid_sample(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0);
  const auto axes = static_cast<int64_t>(e.rank(x)) - 2;
  const ValueId points = e.reshape(d.input(1), {0, -1, axes});
  Sampler sampler(e, d.attrs());
  std::vector<Tap> taps;
  for (int64_t axis = 0; axis < axes && e.status().ok(); ++axis) {
    const int64_t size = e.shape(x)[static_cast<size_t>(axis + 2)].number();
    const int64_t place = axes - 1 - axis;  // a point names its innermost axis first
    const ValueId at = e.squeeze(slice_axis(e, points, 2, place, place + 1), {2});
    const std::vector<Tap> along = sampler.taps(at, size);
    taps = axis == 0 ? along : crossed(e, taps, along, size);
  }
  const ValueId y = read(e, e.reshape(x, {0, 0, -1}), taps);
  std::vector<ValueId> shape{dim_of(e, x, 0), dim_of(e, x, 1)};
  for (int64_t axis = 0; axis < axes; ++axis) shape.push_back(dim_of(e, d.input(1), axis + 1));
  d.set_output(0,
               e.op("Reshape", {y, shape_from(e, std::move(shape))}, {{"allowzero", int64_t{1}}}));
}

/// Points of an axis of `size` from -1 to 1: the ends themselves, or the middles of its cells.
double point(int64_t k, int64_t size, bool aligned) {
  const auto n = static_cast<double>(size);
  if (aligned) return size == 1 ? 0.0 : -1 + 2 * static_cast<double>(k) / (n - 1);
  return -1 + (2 * static_cast<double>(k) + 1) / n;
}

Status infer_affine_grid(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_ASSIGN(const std::vector<int64_t> size, known_numbers(c, 1, "size"));
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3)
    return invalid_argument("'size' must be [N, C, H, W] or [N, C, D, H, W]");
  GR_TRY(
      want_type(c, 0, Type{c.input(0).dtype, {Dim(size[0]), Dim(axes), Dim(axes + 1)}}, "theta"));
  Shape out{Dim(size[0])};
  for (size_t k = 2; k < size.size(); ++k) out.push_back(Dim(size[k]));
  out.push_back(Dim(axes));
  c.set_output(0, {c.input(0).dtype, std::move(out)});
  return {};
}

/// The points of a whole grid, innermost axis first and a 1 behind, times theta.
void decompose_affine_grid(DecomposeContext& d) {
  Emitter& e = d.e();
  const std::vector<int64_t> size = numbers_of(e, d.input(1));
  const bool aligned = d.attrs().get_int("align_corners") != 0;
  const std::vector<int64_t> spatial(size.begin() + 2, size.end());
  int64_t count = 1;
  for (const int64_t n : spatial) count *= n;
  std::vector<double> points;
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k;
    for (size_t axis = spatial.size(); axis-- > 0; rest /= spatial[axis]) {
      points.push_back(point(rest % spatial[axis], spatial[axis], aligned));
    }
    points.push_back(1.0);
  }
  const auto axes = static_cast<int64_t>(spatial.size());
  const ValueId base = reals_of(e, e.type(d.input(0)).dtype, {count, axes + 1}, points);
  std::vector<int64_t> shape{size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(axes);
  const ValueId y = e.matmul(e.unsqueeze(base, {0}), d.input(0), false, true);
  d.set_output(0, e.op("Reshape", {y, e.ints(shape)}, {{"allowzero", int64_t{1}}}));
}

}  // namespace

Status add_grid_sample_ops(OpRegistry& ops) {
  OpDef op = define("GridSample", "X, grid", "Y",
                    "X [N, C, spatial] read at the points of grid, -1 to 1 along each axis, "
                    "innermost axis first: the nearest place, linear or cubic (a = -0.75).");
  op.attrs = {attr("align_corners", int64_t{0}), attr("mode", std::string("linear")),
              attr("padding_mode", std::string("zeros"))};
  op.infer = infer_grid_sample;
  op.decompose = decompose_grid_sample;
  GR_TRY(ops.add(std::move(op)));
  op = define("AffineGrid", "theta, size", "grid",
              "The points of a grid of `size` [N, C, spatial], which is known while building, "
              "moved by theta.");
  op.attrs = {attr("align_corners", int64_t{0})};
  op.infer = infer_affine_grid;
  op.decompose = decompose_affine_grid;
  return ops.add(std::move(op));
}

}  // namespace gradrack
