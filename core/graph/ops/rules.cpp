// SPDX-License-Identifier: Apache-2.0
// Shared parts of shape and gradient rules: see rules.hpp.
#include "core/graph/ops/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {

OpDef define(std::string name, std::string_view inputs, std::string_view outputs, std::string doc) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.inputs = ports(inputs);
  op.outputs = ports(outputs);
  return op;
}

OpDef define_own(std::string name, std::string_view inputs, std::string_view outputs,
                 std::string doc) {
  OpDef op = define(std::move(name), inputs, outputs, std::move(doc));
  op.domain = "gradrack";
  return op;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t k = 0; k < rank; ++k) {
    const Dim x = k + a.size() < rank ? Dim(1) : a[k + a.size() - rank];
    const Dim y = k + b.size() < rank ? Dim(1) : b[k + b.size() - rank];
    if (!(x == y) && !x.is_one() && !y.is_one()) {
      return invalid_argument(fmt::format("{} and {} do not broadcast: {} against {}", to_text(a),
                                          to_text(b), x.text(), y.text()));
    }
    out[k] = x.is_one() ? y : x;
  }
  return out;
}

Status check_broadcasts_to(const Shape& from, const Shape& to, std::string_view what) {
  const auto both = broadcast_shapes(from, to);
  if (both.ok() && *both == to) return {};
  return invalid_argument(
      fmt::format("{} {} does not broadcast to {}", what, to_text(from), to_text(to)));
}

Result<int64_t> normalize_axis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    return invalid_argument(
        fmt::format("axis {} is out of range for rank {}: wanted {} to {}", axis, n, -n, n - 1));
  }
  return axis < 0 ? axis + n : axis;
}

Result<std::vector<int64_t>> normalize_axes(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<int64_t> out;
  for (const int64_t each : axes) {
    GR_ASSIGN(const int64_t axis, normalize_axis(each, rank));
    if (std::find(out.begin(), out.end(), axis) != out.end()) {
      return invalid_argument(fmt::format("axis {} is named twice", axis));
    }
    out.push_back(axis);
  }
  return out;
}

namespace {

bool is_in(gr_dtype_t dtype, Dtypes set) {
  switch (set) {
    case Dtypes::kReal:
      return is_real(dtype);
    case Dtypes::kNumber:
      return dtype != GR_BOOL;
    case Dtypes::kIndex:
      return dtype == GR_INT32 || dtype == GR_INT64;
    case Dtypes::kBool:
      return dtype == GR_BOOL;
    default:
      return true;
  }
}

const char* name_of(Dtypes set) {
  switch (set) {
    case Dtypes::kReal:
      return "a floating dtype";
    case Dtypes::kNumber:
      return "a number dtype";
    case Dtypes::kIndex:
      return "int32 or int64";
    case Dtypes::kBool:
      return "bool";
    default:
      return "any dtype";
  }
}

}  // namespace

Status want_dtype(const InferContext& c, size_t k, Dtypes set) {
  if (!c.has_input(k) || is_in(c.input(k).dtype, set)) return {};
  return invalid_argument(
      fmt::format("input {} must have {}, got {}", k, name_of(set), dtype_name(c.input(k).dtype)));
}

Status want_same_dtype(const InferContext& c, Dtypes set, size_t first) {
  for (size_t k = first; k < c.input_count(); ++k) {
    GR_TRY(want_dtype(c, k, set));
    if (!c.has_input(k) || c.input(k).dtype == c.input(first).dtype) continue;
    return invalid_argument(
        fmt::format("inputs {} and {} must share one dtype, got {} and {}: "
                    "add a Cast",
                    first, k, dtype_name(c.input(first).dtype), dtype_name(c.input(k).dtype)));
  }
  return {};
}

Status want_rank(const InferContext& c, size_t k, size_t rank) {
  if (c.input(k).shape.size() == rank) return {};
  return invalid_argument(
      fmt::format("input {} must have rank {}, got {}", k, rank, to_text(c.input(k).shape)));
}

Result<KnownInts> known_ints(const InferContext& c, size_t k, std::string_view name) {
  GR_TRY(want_dtype(c, k, Dtypes::kIndex));
  const KnownInts* known = c.known(k);
  if (known != nullptr) return *known;
  return invalid_argument(fmt::format(
      "'{}' must be known while the graph is built: make it a constant or derive it from Shape",
      name));
}

Result<std::vector<int64_t>> known_numbers(const InferContext& c, size_t k, std::string_view name) {
  GR_ASSIGN(const KnownInts known, known_ints(c, k, name));
  std::vector<int64_t> out;
  for (const Dim& dim : known) {
    if (!dim.is_number()) {
      return invalid_argument(
          fmt::format("'{}' must hold plain numbers, got {}", name, to_text(known)));
    }
    out.push_back(dim.number());
  }
  return out;
}

Status infer_like_first(InferContext& c, Dtypes set) {
  GR_TRY(want_dtype(c, 0, set));
  c.set_output(0, c.input(0));
  return {};
}

ValueId zeros_like(Emitter& e, ValueId x) { return e.expand_like(e.like(x, 0.0), x); }

ValueId dim_of(Emitter& e, ValueId x, int64_t axis) {
  const Shape shape = e.shape(x);
  if (static_cast<size_t>(axis) >= shape.size()) {
    e.fail(internal_error("a rule asked for an axis that its value lacks"));
    return GR_NO_VALUE;
  }
  const Dim& dim = shape[static_cast<size_t>(axis)];
  if (dim.is_number()) return e.ints({dim.number()});
  return e.op("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}

std::vector<int64_t> numbers_of(Emitter& e, ValueId id) {
  std::vector<int64_t> out;
  if (!e.graph().has(id) || !e.graph().value(id).known.has_value()) return out;
  for (const Dim& dim : *e.graph().value(id).known) {
    if (dim.is_number()) out.push_back(dim.number());
  }
  return out;
}

Status infer_broadcast(InferContext& c, Dtypes set, bool to_bool) {
  GR_TRY(want_same_dtype(c, set));
  if (c.input_count() == 0) return invalid_argument("needs at least one input");
  Shape shape = c.input(0).shape;
  for (size_t k = 1; k < c.input_count(); ++k) {
    GR_ASSIGN(shape, broadcast_shapes(shape, c.input(k).shape));
  }
  c.set_output(0, {to_bool ? gr_dtype_t{GR_BOOL} : c.input(0).dtype, std::move(shape)});
  return {};
}

}  // namespace gradrack
