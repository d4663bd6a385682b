// SPDX-License-Identifier: Apache-2.0
// Operator entries that index by tuples: GatherND and ScatterND, made of Gather and ScatterElements
// over the folded leading axes.
//
// A tuple becomes one number. Invariant: a tuple with an entry out of range becomes a number that
// is out of range, so that the kernel below refuses it: folding never turns a bad index into a good
// one.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// data [batch..., d1..dn, rest...] indexed by indices [batch..., ..., n].
Result<size_t> tuple_size(const InferContext& c, size_t batch) {
  GR_TRY(want_dtype(c, 1, Dtypes::kIndex));
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
  if (data.empty() || indices.empty() || !indices.back().is_number()) {
    return invalid_argument("data and indices need rank 1 or more, and tuples of a number of dims");
  }
  const int64_t n = indices.back().number();
  if (n < 1 || batch + static_cast<size_t>(n) > data.size() || batch >= indices.size()) {
    return invalid_argument("tuples of " + std::to_string(n) + " behind " + std::to_string(batch) +
                            " batch dims do not fit data " + to_text(data));
  }
  for (size_t k = 0; k < batch; ++k) {
    if (!(data[k] == indices[k])) {
      return invalid_argument("batch dim " + std::to_string(k) + " is " + data[k].text() +
                              " in data, " + indices[k].text() + " in indices");
    }
  }
  return static_cast<size_t>(n);
}

/// Product of the dims [first, last) of x as int64 [1].
ValueId extent(Emitter& e, ValueId x, size_t first, size_t last) {
  ValueId product = e.ints({1});
  for (size_t k = first; k < last; ++k) {
    const ValueId dim = dim_of(e, x, static_cast<int64_t>(k));
    const std::vector<int64_t> a = numbers_of(e, product), b = numbers_of(e, dim);
    product = a.size() == 1 && b.size() == 1 ? e.ints({a[0] * b[0]}) : e.mul(product, dim);
  }
  return product;
}

/// Entry k of every tuple, without the tuple's axis.
ValueId entry(Emitter& e, ValueId indices, int64_t k) {
  const auto last = static_cast<int64_t>(e.rank(indices)) - 1;
  return e.squeeze(slice_axis(e, indices, last, k, k + 1), {last});
}

/// The tuples as numbers into the n axes of data after `batch`, with each batch's own offset.
ValueId folded_index(Emitter& e, ValueId data, ValueId tuples, size_t batch, size_t n) {
  const ValueId indices = e.cast(tuples, GR_INT64);
  const ValueId zero = e.squeeze(e.ints({0}), {0});
  ValueId sum = zero, bad = GR_NO_VALUE;
  for (size_t k = 0; k < n; ++k) {
    const ValueId size = dim_of(e, data, static_cast<int64_t>(batch + k));
    const ValueId raw = entry(e, indices, static_cast<int64_t>(k));
    const ValueId at = e.where(e.op("Less", {raw, zero}), e.add(raw, size), raw);
    const ValueId outside =
        e.op("Or", {e.op("Less", {at, zero}), e.op("GreaterOrEqual", {at, size})});
    bad = bad == GR_NO_VALUE ? outside : e.op("Or", {bad, outside});
    sum = e.add(e.mul(sum, size), at);
  }
  const size_t rank = e.rank(indices) - 1;
  const ValueId block = extent(e, data, batch, batch + n);
  ValueId offset = zero;
  for (size_t k = 0; k < batch; ++k) {
    const ValueId place =
        places_along(e, dim_of(e, data, static_cast<int64_t>(k)), static_cast<int64_t>(k), rank);
    offset = e.add(e.mul(offset, dim_of(e, data, static_cast<int64_t>(k))), place);
  }
  sum = e.add(sum, e.mul(offset, block));
  return e.where(bad, extent(e, data, 0, batch + n), sum);
}

/// data with the axes before `first` folded into one.
ValueId folded(Emitter& e, ValueId data, size_t first) {
  std::vector<ValueId> dims{extent(e, data, 0, first)};
  for (size_t k = first; k < e.rank(data); ++k) {
    dims.push_back(dim_of(e, data, static_cast<int64_t>(k)));
  }
  return e.op("Reshape", {data, shape_from(e, std::move(dims))}, {{"allowzero", int64_t{1}}});
}

OpDef gather_nd_op() {
  OpDef op = define("GatherND", "data, indices", "output",
                    "The slices of data that the tuples in the last axis of indices name, within "
                    "the same element of the first batch_dims axes.");
  op.attrs = {attr("batch_dims", int64_t{0})};
  op.infer = [](InferContext& c) -> Status {
    const int64_t batch = c.attrs().get_int("batch_dims");
    if (batch < 0) return invalid_argument("batch_dims must not be negative");
    GR_ASSIGN(const size_t n, tuple_size(c, static_cast<size_t>(batch)));
    const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
    Shape shape(indices.begin(), indices.end() - 1);
    shape.insert(shape.end(), data.begin() + batch + static_cast<int64_t>(n), data.end());
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return {};
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const auto batch = static_cast<size_t>(d.attrs().get_int("batch_dims"));
    const auto n = static_cast<size_t>(e.shape(d.input(1)).back().number());
    const ValueId index = folded_index(e, d.input(0), d.input(1), batch, n);
    d.set_output(0, e.op("Gather", {folded(e, d.input(0), batch + n), index}));
  };
  return op;
}

Status infer_scatter_nd(InferContext& c) {
  GR_TRY(tuple_size(c, 0).status());
  const std::string how = c.attrs().get_string("reduction");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min") {
    return invalid_argument("reduction must be none, add, mul, max or min, got " + how);
  }
  const Shape &data = c.input(0).shape, &indices = c.input(1).shape;
  Shape want(indices.begin(), indices.end() - 1);
  want.insert(want.end(), data.begin() + indices.back().number(), data.end());
  GR_TRY(want_type(c, 2, Type{c.input(0).dtype, std::move(want)}, "updates"));
  c.set_output(0, c.input(0));
  return {};
}

/// Rows of the folded data: [tuples, the rest of data as one axis].
void scatter_nd_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId data = d.input(0);
  const auto n = static_cast<size_t>(e.shape(d.input(1)).back().number());
  const size_t rank = e.rank(data);
  const Attrs zero_ok{{"allowzero", int64_t{1}}};
  const ValueId width = extent(e, data, n, rank);
  const ValueId rows =
      e.op("Reshape", {data, shape_from(e, {extent(e, data, 0, n), width})}, zero_ok);
  const ValueId index = folded_index(e, data, d.input(1), 0, n);
  const ValueId count = extent(e, d.input(1), 0, e.rank(d.input(1)) - 1);
  const ValueId shape = shape_from(e, {count, width});
  const ValueId updates = e.op("Reshape", {d.input(2), shape}, zero_ok);
  const ValueId column = e.op("Reshape", {index, shape_from(e, {count, e.ints({1})})}, zero_ok);
  const ValueId y = e.op("ScatterElements", {rows, e.op("Expand", {column, shape}), updates},
                         {{"axis", int64_t{0}}, {"reduction", d.attrs().get_string("reduction")}});
  d.set_output(0, e.reshape_like(y, data));
}

OpDef scatter_nd_op() {
  OpDef op = define("ScatterND", "data, indices, updates", "output",
                    "data with the slices that the tuples in the last axis of indices name "
                    "replaced by updates, or joined with them by `reduction`, as in "
                    "ScatterElements.");
  op.attrs = {attr("reduction", std::string("none"))};
  op.infer = infer_scatter_nd;
  op.decompose = scatter_nd_decompose;
  return op;
}

}  // namespace

Status add_index_nd_ops(OpRegistry& ops) {
  GR_TRY(ops.add(gather_nd_op()));
  return ops.add(scatter_nd_op());
}

}  // namespace gradrack
