// SPDX-License-Identifier: Apache-2.0
// Operator entries that pick and place elements by index: Gather with its gradient, GatherElements,
// ScatterElements.
//
// Indices are int32 or int64; a negative one counts from the end. One out of range is an error of
// the kernel that names position and value; nothing is read out of bounds.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

/// data's shape with `axis` replaced by the dims of indices.
Result<Shape> gathered_shape(const Shape& data, const Shape& indices, int64_t axis) {
  GR_ASSIGN(axis, normalize_axis(axis, data.size()));
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  if (shape.size() <= GR_MAX_RANK) return shape;
  return invalid_argument("rank " + std::to_string(shape.size()) + " is over the limit of " +
                          std::to_string(GR_MAX_RANK));
}

/// Picks known integers by known indices, so that shapes can be taken apart in the graph.
Status keep_known_gather(InferContext& c) {
  const KnownInts* data = c.known(0);
  const KnownInts* indices = c.known(1);
  if (data == nullptr || indices == nullptr || c.input(0).shape.size() != 1) return {};
  KnownInts out;
  const auto size = static_cast<int64_t>(data->size());
  for (const Dim& index : *indices) {
    if (!index.is_number()) return {};
    const int64_t at = index.number() < 0 ? index.number() + size : index.number();
    if (at < 0 || at >= size) {
      return invalid_argument("index " + index.text() + " is out of range for " +
                              std::to_string(size) + " elements");
    }
    out.push_back((*data)[static_cast<size_t>(at)]);
  }
  c.set_known(0, std::move(out));
  return {};
}

OpDef gather_op() {
  OpDef op = define("Gather", "data, indices", "output",
                    "Slices of data along `axis`, one for each index.");
  op.attrs = {attr("axis", int64_t{0})};
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 1, Dtypes::kIndex));
    GR_ASSIGN(Shape shape,
              gathered_shape(c.input(0).shape, c.input(1).shape, c.attrs().get_int("axis")));
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return keep_known_gather(c);
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    Emitter& e = g.e();
    g.set_grad(
        0, e.own("GatherGrad", {g.grad_output(0), g.input(1), e.shape_of(g.input(0))}, g.attrs()));
  };
  return op;
}

OpDef gather_grad_op() {
  OpDef op = define_own("GatherGrad", "gy, indices, shape", "gx",
                        "Zeros of the given shape to which each slice of gy is added at its index, "
                        "in the order of indices, so that the sum has one order on every device.");
  op.attrs = {attr("axis", int64_t{0})};
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kReal));
    GR_TRY(want_dtype(c, 1, Dtypes::kIndex));
    GR_ASSIGN(const KnownInts shape, known_ints(c, 2, "shape"));
    GR_ASSIGN(const Shape gathered,
              gathered_shape(shape, c.input(1).shape, c.attrs().get_int("axis")));
    if (!(gathered == c.input(0).shape)) {
      return invalid_argument("gy must be " + to_text(gathered) + ", got " +
                              to_text(c.input(0).shape));
    }
    c.set_output(0, {c.input(0).dtype, shape});
    return {};
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    g.set_grad(0, g.e().op("Gather", {g.grad_output(0), g.input(1)}, g.attrs()));
  };
  return op;
}

/// The rank of indices is that of data; beside `axis` they may be shorter. Symbolic dims are equal.
Status check_elements(const InferContext& c) {
  GR_TRY(want_dtype(c, 1, Dtypes::kIndex));
  const Shape& data = c.input(0).shape;
  const Shape& indices = c.input(1).shape;
  if (data.empty() || data.size() != indices.size()) {
    return invalid_argument("data and indices need one rank, at least 1");
  }
  GR_ASSIGN(const int64_t axis, normalize_axis(c.attrs().get_int("axis"), data.size()));
  for (size_t k = 0; k < data.size(); ++k) {
    if (static_cast<int64_t>(k) == axis || indices[k] == data[k]) continue;
    const bool numbers = indices[k].is_number() && data[k].is_number();
    if (!numbers || indices[k].number() > data[k].number()) {
      return invalid_argument("indices do not fit into data on dim " + std::to_string(k) + ": " +
                              indices[k].text() + " against " + data[k].text());
    }
  }
  return {};
}

OpDef gather_elements_op() {
  OpDef op = define("GatherElements", "data, indices", "output",
                    "For each place of indices the element of data at that place, with the index "
                    "in place of its coordinate on `axis`.");
  op.attrs = {attr("axis", int64_t{0})};
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(check_elements(c));
    c.set_output(0, {c.input(0).dtype, c.input(1).shape});
    return {};
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    Emitter& e = g.e();
    Attrs attrs = g.attrs();
    attrs.set("reduction", std::string("add"));
    g.set_grad(0, e.op("ScatterElements", {zeros_like(e, g.input(0)), g.input(1), g.grad_output(0)},
                       attrs));
  };
  return op;
}

Status infer_scatter(InferContext& c) {
  const std::string how = c.attrs().get_string("reduction");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min") {
    return invalid_argument("reduction must be none, add, mul, max or min, got " + how);
  }
  GR_TRY(check_elements(c));
  if (c.input(2).dtype != c.input(0).dtype) {
    return invalid_argument("updates must have the dtype of data");
  }
  if (!(c.input(2).shape == c.input(1).shape)) {
    return invalid_argument("updates must have the shape of indices");
  }
  return infer_like_first(c, how == "none" ? Dtypes::kAny : Dtypes::kNumber);
}

void scatter_grad(GradContext& g) {
  Emitter& e = g.e();
  const ValueId gy = g.grad_output(0);
  const Attrs axis = {{"axis", g.attrs().get_int("axis")}};
  const std::string how = g.attrs().get_string("reduction");
  const bool add = how == "add";
  if (!add && how != "none") {
    return e.fail(unsupported("ScatterElements with reduction '" + how + "' has no gradient"));
  }
  if (g.needs(0)) {
    g.set_grad(
        0, add ? gy : e.op("ScatterElements", {gy, g.input(1), zeros_like(e, g.input(2))}, axis));
  }
  if (g.needs(2)) g.set_grad(2, e.op("GatherElements", {gy, g.input(1)}, axis));
}

OpDef scatter_elements_op() {
  OpDef op = define("ScatterElements", "data, indices, updates", "output",
                    "data with updates put ('none': the last of equal places stays) or joined "
                    "('add', 'mul', 'max', 'min': in order) where GatherElements would read. Only "
                    "'none', whose places are taken to be distinct, and 'add' have a gradient.");
  op.attrs = {attr("axis", int64_t{0}), attr("reduction", std::string("none"))};
  op.primitive = true;
  op.infer = infer_scatter;
  op.grad = scatter_grad;
  return op;
}

}  // namespace

Status add_index_ops(OpRegistry& ops) {
  GR_TRY(ops.add(gather_op()));
  GR_TRY(ops.add(gather_grad_op()));
  GR_TRY(ops.add(gather_elements_op()));
  return ops.add(scatter_elements_op());
}

}  // namespace gradrack
