// SPDX-License-Identifier: Apache-2.0
// Operator entries that join and divide along one axis: Concat and Split, each the other's
// gradient.
//
// Sizes may be symbolic; positions are then computed in the graph from known integers. Part of the
// family of slice.cpp.
#include <fmt/format.h>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

Status add_concat_ops(OpRegistry& ops);

namespace {

Status infer_concat(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kAny));
  if (c.input_count() == 0) return invalid_argument("needs at least one input");
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), shape.size()));
  const auto at = static_cast<size_t>(axis);
  Dim total(0);
  KnownInts known;
  bool all_known = shape.size() == 1;
  for (size_t k = 0; k < c.input_count(); ++k) {
    Shape other = c.input(k).shape;
    if (other.size() != shape.size()) {
      return invalid_argument(
          fmt::format("input {} has rank {}, input 0 has rank {}", k, other.size(), shape.size()));
    }
    total = total + other[at];
    other[at] = shape[at];
    if (!(other == shape)) {
      return invalid_argument(fmt::format("inputs 0 and {} differ beside axis {}: {} against {}", k,
                                          axis, to_text(shape), to_text(c.input(k).shape)));
    }
    all_known = all_known && c.known(k) != nullptr;
    if (all_known) known.insert(known.end(), c.known(k)->begin(), c.known(k)->end());
  }
  shape[at] = total;
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  if (all_known) c.set_known(0, std::move(known));
  return {};
}

/// A running position along an axis: a number while it can be one.
class Cursor {
 public:
  Cursor(Emitter& e, int64_t axis) : e_(e), axis_(axis), at_(e.ints({0})) {}

  /// The piece of `x` of the next `size` elements (int64 [1]).
  ValueId take(ValueId x, ValueId size) {
    const ValueId start = at_;
    skip(size);
    return e_.op("Slice", {x, start, at_, e_.ints({axis_})});
  }
  void skip(ValueId size) {
    const std::vector<int64_t> a = numbers_of(e_, at_), b = numbers_of(e_, size);
    at_ = a.size() == 1 && b.size() == 1 ? e_.ints({a[0] + b[0]}) : e_.add(at_, size);
  }

 private:
  Emitter& e_;
  int64_t axis_;
  ValueId at_;
};

int64_t axis_of(Emitter& e, const Attrs& attrs, ValueId x) {
  const auto axis = normalize_axis(attrs.get_int("axis"), e.rank(x));
  if (!axis.ok()) e.fail(axis.status());
  return axis.ok() ? *axis : 0;
}

OpDef concat_op() {
  OpDef op = define("Concat", "inputs*", "concat_result",
                    "The inputs one after the other along `axis`; all other dims are equal.");
  op.attrs = {required_attr("axis", GR_ATTR_INT)};
  op.primitive = true;
  op.infer = infer_concat;
  op.grad = [](GradContext& g) {
    Emitter& e = g.e();
    const int64_t axis = axis_of(e, g.attrs(), g.input(0));
    Cursor cursor(e, axis);
    for (size_t k = 0; k < g.input_count(); ++k) {
      const ValueId size = dim_of(e, g.input(k), axis);
      if (g.needs(k)) {
        g.set_grad(k, cursor.take(g.grad_output(0), size));
      } else {
        cursor.skip(size);
      }
    }
  };
  return op;
}

/// Sizes of the pieces of a Split into `count`.
Result<KnownInts> split_sizes(const InferContext& c, const Dim& total, size_t count) {
  if (c.has_input(1)) {
    GR_ASSIGN(KnownInts sizes, known_ints(c, 1, "split"));
    Dim sum(0);
    for (const Dim& size : sizes) sum = sum + size;
    if (sizes.size() == count && sum == total) return sizes;
    return invalid_argument(fmt::format("'split' is {} for {} outputs of an axis of {}",
                                        to_text(sizes), count, total.text()));
  }
  const int64_t wanted = c.attrs().get_int("num_outputs", static_cast<int64_t>(count));
  if (wanted != static_cast<int64_t>(count)) {
    return invalid_argument(
        fmt::format("num_outputs is {}, {} outputs were asked for", wanted, count));
  }
  Dim chunk = (total + Dim(wanted - 1)).floor_div(Dim(wanted));
  if (!total.is_number()) {
    chunk = total.floor_div(Dim(wanted));
    if (!(chunk * Dim(wanted) == total)) {
      return invalid_argument(
          fmt::format("an axis of {} does not divide into {} equal parts", total.text(), wanted));
    }
  }
  KnownInts sizes(count, chunk);
  sizes.back() = total - chunk * Dim(wanted - 1);
  if (sizes.back().is_number() && sizes.back().number() < 0) {
    return invalid_argument(fmt::format("an axis of {} is too short for {} parts of {}",
                                        total.text(), wanted, chunk.text()));
  }
  return sizes;
}

Status infer_split(InferContext& c) {
  const Shape& from = c.input(0).shape;
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), from.size()));
  const auto at = static_cast<size_t>(axis);
  GR_ASSIGN(const KnownInts sizes, split_sizes(c, from[at], c.output_count()));
  for (size_t k = 0; k < sizes.size(); ++k) {
    Shape shape = from;
    shape[at] = sizes[k];
    c.set_output(k, {c.input(0).dtype, std::move(shape)});
  }
  return {};
}

/// Size of piece k as a value: from the input `split`, or an equal share of the axis.
ValueId piece_size(DecomposeContext& d, int64_t axis, size_t k) {
  Emitter& e = d.e();
  const auto at = static_cast<int64_t>(k);
  if (d.input_count() > 1) {
    const std::vector<int64_t> sizes = numbers_of(e, d.input(1));
    if (sizes.size() == d.output_count()) return e.ints({sizes[k]});
    return e.op("Slice", {d.input(1), e.ints({at}), e.ints({at + 1})});
  }
  const auto parts = static_cast<int64_t>(d.output_count());
  const ValueId whole = dim_of(e, d.input(0), axis);
  const std::vector<int64_t> total = numbers_of(e, whole);
  if (total.size() != 1) return e.op("Div", {whole, e.ints({parts})});
  const int64_t chunk = (total[0] + parts - 1) / parts;
  return e.ints({at + 1 == parts ? total[0] - chunk * (parts - 1) : chunk});
}

void split_grad(GradContext& g) {
  if (!g.needs(0)) return;
  Emitter& e = g.e();
  std::vector<ValueId> pieces;
  for (size_t k = 0; k < g.output_count(); ++k) {
    const ValueId gy = g.grad_output(k);
    pieces.push_back(gy != GR_NO_VALUE ? gy : zeros_like(e, g.output(k)));
  }
  const int64_t axis = g.attrs().get_int("axis");
  g.set_grad(0, e.op("Concat", std::move(pieces), {{"axis", axis}}));
}

OpDef split_op() {
  OpDef op = define("Split", "input, split?", "outputs*",
                    "Pieces along `axis`: of the sizes in `split`, or as many equal ones as there "
                    "are outputs (the last may be shorter).");
  op.attrs = {attr("axis", int64_t{0}), optional_attr("num_outputs", GR_ATTR_INT)};
  op.infer = infer_split;
  op.decompose = [](DecomposeContext& d) {
    const int64_t axis = axis_of(d.e(), d.attrs(), d.input(0));
    Cursor cursor(d.e(), axis);
    for (size_t k = 0; k < d.output_count(); ++k) {
      d.set_output(k, cursor.take(d.input(0), piece_size(d, axis, k)));
    }
  };
  op.grad = split_grad;
  return op;
}

}  // namespace

Status add_concat_ops(OpRegistry& ops) {
  GR_TRY(ops.add(concat_op()));
  return ops.add(split_op());
}

}  // namespace gradrack
