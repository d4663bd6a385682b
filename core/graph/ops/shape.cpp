// SPDX-License-Identifier: Apache-2.0
// Operator entries that change a shape and leave elements as they are: Shape, Reshape, Flatten,
// Squeeze, Unsqueeze, Transpose, Expand, gradrack.Copy, Constant.
//
// Shapes are symbolic, so a Reshape must come out even for every value of the symbols: a view
// always has as many elements as what it views. Integers known while building stay known through
// views.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

void reshape_back(GradContext& g) {
  if (g.needs(0)) g.set_grad(0, g.e().reshape_like(g.grad_output(0), g.input(0)));
}

OpDef view_op(std::string name, std::string_view inputs, std::string doc) {
  OpDef op = define(std::move(name), inputs, "output", std::move(doc));
  op.view = true;
  op.grad = reshape_back;
  return op;
}

/// Output 0: input 0 under `shape`; known integers of rank 0 and 1 stay known.
Status set_view(InferContext& c, Shape shape) {
  const bool flat = shape.size() <= 1;
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  if (flat && c.known(0) != nullptr) c.set_known(0, *c.known(0));
  return {};
}

/// What -1 in a Reshape stands for, given the product of the other dims.
Result<Dim> missing_dim(const Dim& total, const Dim& rest) {
  if (rest == Dim(0)) {
    return invalid_argument("-1 cannot be inferred: the other dimensions hold 0 elements");
  }
  const Dim quotient = total.floor_div(rest);
  if (quotient * rest == total) return quotient;
  return invalid_argument(fmt::format("-1 cannot be inferred: {} elements do not divide by {}",
                                      total.text(), rest.text()));
}

Result<Shape> reshaped(const Shape& from, const KnownInts& to, bool allow_zero) {
  Shape shape;
  int missing = -1;
  bool zero = false;
  Dim rest(1);
  for (size_t k = 0; k < to.size(); ++k) {
    Dim dim = to[k];
    const int64_t number = dim.is_number() ? dim.number() : 1;
    zero = zero || (dim.is_number() && number == 0);
    if (number < -1) return invalid_argument(fmt::format("shape holds {}", number));
    if (number == -1) {
      if (missing >= 0) return invalid_argument("shape holds -1 twice");
      missing = static_cast<int>(k);
      dim = Dim(1);
    } else if (number == 0 && !allow_zero) {
      if (k >= from.size()) {
        return invalid_argument(
            fmt::format("0 at place {} copies a dimension that {} lacks", k, to_text(from)));
      }
      dim = from[k];
    }
    rest = rest * dim;
    shape.push_back(dim);
  }
  if (missing >= 0 && zero && allow_zero) {
    return invalid_argument("allowzero=1 does not take 0 and -1 in one shape");
  }
  const Dim total = element_count(from);
  if (missing >= 0) {
    GR_ASSIGN(shape[static_cast<size_t>(missing)], missing_dim(total, rest));
  } else if (!(rest == total)) {
    return invalid_argument(fmt::format("{} has {} elements, {} has {}", to_text(from),
                                        total.text(), to_text(shape), rest.text()));
  }
  return shape;
}

OpDef reshape_op() {
  OpDef op = view_op("Reshape", "data, shape",
                     "The same elements under `shape`: 0 copies the dimension at its place unless "
                     "allowzero is 1, one -1 is what is left. It must come out even for every "
                     "value of symbolic dimensions.");
  op.attrs = {attr("allowzero", int64_t{0})};
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const KnownInts to, known_ints(c, 1, "shape"));
    GR_TRY(want_rank(c, 1, 1));
    const bool allow_zero = c.attrs().get_int("allowzero") != 0;
    GR_ASSIGN(Shape shape, reshaped(c.input(0).shape, to, allow_zero));
    return set_view(c, std::move(shape));
  };
  return op;
}

OpDef flatten_op() {
  OpDef op = view_op("Flatten", "input",
                     "A matrix: dims before `axis` folded into rows, the others into columns.");
  op.attrs = {attr("axis", int64_t{1})};
  op.infer = [](InferContext& c) -> Status {
    const Shape& from = c.input(0).shape;
    const int64_t axis = c.attrs().get_int("axis"), rank = static_cast<int64_t>(from.size());
    if (axis < -rank || axis > rank) {
      return invalid_argument(fmt::format("axis {} is out of range for rank {}", axis, rank));
    }
    const auto cut = from.begin() + (axis < 0 ? axis + rank : axis);
    return set_view(
        c, {element_count(Shape(from.begin(), cut)), element_count(Shape(cut, from.end()))});
  };
  return op;
}

Status infer_squeeze(InferContext& c) {
  const Shape& from = c.input(0).shape;
  std::vector<int64_t> axes;
  if (c.has_input(1)) {
    GR_ASSIGN(axes, known_numbers(c, 1, "axes"));
    GR_ASSIGN(axes, normalize_axes(axes, from.size()));
  }
  Shape shape;
  for (size_t k = 0; k < from.size(); ++k) {
    const bool named = std::find(axes.begin(), axes.end(), int64_t(k)) != axes.end();
    if (named && !from[k].is_one()) {
      return invalid_argument(fmt::format("axis {} of {} is {}, only 1 can be squeezed", k,
                                          to_text(from), from[k].text()));
    }
    const bool drop = c.has_input(1) ? named : from[k].is_one();
    if (!drop) shape.push_back(from[k]);
  }
  return set_view(c, std::move(shape));
}

Status infer_unsqueeze(InferContext& c) {
  const Shape& from = c.input(0).shape;
  GR_ASSIGN(std::vector<int64_t> axes, known_numbers(c, 1, "axes"));
  const size_t rank = from.size() + axes.size();
  if (rank > GR_MAX_RANK) {
    return invalid_argument(fmt::format("rank {} is over the limit of {}", rank, +GR_MAX_RANK));
  }
  GR_ASSIGN(axes, normalize_axes(axes, rank));
  Shape shape;
  size_t next = 0;
  for (size_t k = 0; k < rank; ++k) {
    const bool added = std::find(axes.begin(), axes.end(), int64_t(k)) != axes.end();
    shape.push_back(added ? Dim(1) : from[next++]);
  }
  return set_view(c, std::move(shape));
}

OpDef shape_op() {
  OpDef op = define("Shape", "data", "shape",
                    "The dims of data from `start` to `end` as int64; known while building.");
  op.attrs = {attr("start", int64_t{0}), optional_attr("end", GR_ATTR_INT)};
  op.primitive = true;
  op.non_differentiable = true;
  op.infer = [](InferContext& c) -> Status {
    const Shape& from = c.input(0).shape;
    const auto rank = static_cast<int64_t>(from.size());
    const auto place = [rank](int64_t k) {
      return std::clamp<int64_t>(k < 0 ? k + rank : k, 0, rank);
    };
    const int64_t start = place(c.attrs().get_int("start"));
    const int64_t end = std::max(start, place(c.attrs().get_int("end", rank)));
    c.set_output(0, {GR_INT64, {Dim(end - start)}});
    c.set_known(0, KnownInts(from.begin() + start, from.begin() + end));
    return {};
  };
  return op;
}

/// The permutation of a Transpose; reversed dims when the attribute is left out.
std::vector<int64_t> permutation(const Attrs& attrs, size_t rank) {
  if (attrs.has("perm")) return attrs.get_ints("perm");
  std::vector<int64_t> perm;
  for (size_t k = rank; k > 0; --k) perm.push_back(static_cast<int64_t>(k) - 1);
  return perm;
}

OpDef transpose_op() {
  OpDef op = define("Transpose", "data", "transposed",
                    "Dim k of the output is dim perm[k] of data; without perm the order of dims is "
                    "reversed.");
  op.attrs = {optional_attr("perm", GR_ATTR_INTS)};
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    const Shape& from = c.input(0).shape;
    const std::vector<int64_t> perm = permutation(c.attrs(), from.size());
    if (perm.size() != from.size()) {
      return invalid_argument(
          fmt::format("perm has {} entries for rank {}", perm.size(), from.size()));
    }
    GR_ASSIGN(const std::vector<int64_t> axes, normalize_axes(perm, from.size()));
    if (axes != perm) return invalid_argument("perm must not be negative");
    Shape shape;
    for (const int64_t axis : perm) shape.push_back(from[static_cast<size_t>(axis)]);
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return {};
  };
  op.grad = [](GradContext& g) {
    if (!g.needs(0)) return;
    const std::vector<int64_t> perm = permutation(g.attrs(), g.e().rank(g.input(0)));
    std::vector<int64_t> inverse(perm.size());
    for (size_t k = 0; k < perm.size(); ++k) inverse[size_t(perm[k])] = int64_t(k);
    g.set_grad(0, g.e().transpose(g.grad_output(0), inverse));
  };
  return op;
}

OpDef expand_op() {
  OpDef op = define("Expand", "input, shape", "output",
                    "The input repeated along broadcast dims; the output has the broadcast of both "
                    "shapes.");
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_ASSIGN(const KnownInts to, known_ints(c, 1, "shape"));
    GR_TRY(want_rank(c, 1, 1));
    GR_ASSIGN(Shape shape, broadcast_shapes(c.input(0).shape, to));
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return {};
  };
  op.grad = [](GradContext& g) {
    if (g.needs(0)) g.set_grad(0, g.e().sum_to(g.grad_output(0), g.input(0)));
  };
  return op;
}

OpDef copy_op() {
  OpDef op = define_own("Copy", "X", "Y", "Y = X in storage of its own.");
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(infer_like_first(c, Dtypes::kAny));
    if (c.known(0) != nullptr) c.set_known(0, *c.known(0));
    return {};
  };
  op.grad = [](GradContext& g) {
    if (g.needs(0)) g.set_grad(0, g.grad_output(0));
  };
  return op;
}

const std::vector<double>* floats_of(const Attrs& attrs) {
  const AttrValue* value = attrs.find("value_floats");
  return value != nullptr ? std::get_if<std::vector<double>>(value) : nullptr;
}

Status infer_constant(InferContext& c) {
  const Attrs& attrs = c.attrs();
  if (attrs.items().size() != 1) {
    return invalid_argument(
        "needs exactly one of value_float, value_floats, value_int and value_ints");
  }
  if (attrs.has("value_int")) {
    c.set_output(0, {GR_INT64, {}});
    c.set_known(0, {Dim(attrs.get_int("value_int"))});
  } else if (attrs.has("value_ints")) {
    const std::vector<int64_t> ints = attrs.get_ints("value_ints");
    c.set_output(0, {GR_INT64, {Dim(static_cast<int64_t>(ints.size()))}});
    c.set_known(0, KnownInts(ints.begin(), ints.end()));
  } else {
    Shape shape;
    if (const auto* floats = floats_of(attrs)) {
      shape.push_back(Dim(static_cast<int64_t>(floats->size())));
    }
    c.set_output(0, {GR_FLOAT32, std::move(shape)});
  }
  return {};
}

OpDef constant_op() {
  OpDef op = define("Constant", "", "output",
                    "A number or a list of numbers, float32 or int64, given as an attribute. "
                    "Tensors of more dims come in through the builder's `constant`.");
  op.inputs.clear();
  op.attrs = {optional_attr("value_float", GR_ATTR_FLOAT),
              optional_attr("value_floats", GR_ATTR_FLOATS),
              optional_attr("value_int", GR_ATTR_INT), optional_attr("value_ints", GR_ATTR_INTS)};
  op.non_differentiable = true;
  op.infer = infer_constant;
  op.decompose = [](DecomposeContext& d) {
    const Attrs& attrs = d.attrs();
    Emitter& e = d.e();
    if (attrs.has("value_ints")) return d.set_output(0, e.ints(attrs.get_ints("value_ints")));
    if (attrs.has("value_int")) {
      return d.set_output(0, e.squeeze(e.ints({attrs.get_int("value_int")}), {0}));
    }
    if (attrs.has("value_float")) {
      return d.set_output(0, e.constant(GR_FLOAT32, attrs.get_float("value_float")));
    }
    const std::vector<double> floats = *floats_of(attrs);
    const Type type{GR_FLOAT32, {Dim(static_cast<int64_t>(floats.size()))}};
    auto made = e.graph().add_constant(type, ConstantData{floats, {}});
    if (!made.ok()) return e.fail(made.status());
    d.set_output(0, *made);
  };
  return op;
}

}  // namespace

Status add_shape_ops(OpRegistry& ops) {
  GR_TRY(ops.add(shape_op()));
  GR_TRY(ops.add(reshape_op()));
  GR_TRY(ops.add(flatten_op()));
  OpDef op = view_op("Squeeze", "data, axes?",
                     "Without the dims named by axes, which must be 1; without axes, without every "
                     "dim that is the number 1 (a symbolic one stays).");
  op.infer = infer_squeeze;
  GR_TRY(ops.add(std::move(op)));
  op = view_op("Unsqueeze", "data, axes", "With dims of 1 put in so that they are at axes.");
  op.infer = infer_unsqueeze;
  GR_TRY(ops.add(std::move(op)));
  GR_TRY(ops.add(transpose_op()));
  GR_TRY(ops.add(expand_op()));
  GR_TRY(ops.add(copy_op()));
  return ops.add(constant_op());
}

}  // namespace gradrack
