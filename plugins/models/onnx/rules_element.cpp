// SPDX-License-Identifier: Apache-2.0
// Rules of operators that work element by element: Cast and its likes, Clip, Softmax and its kin
// before opset 13. See rules.hpp.
#include <limits>

#include "fields.hpp"
#include "rules.hpp"

namespace gradrack::onnx {

namespace {

void cast(NodeImport& n) {
  const auto to = static_cast<int32_t>(n.attr("to", int64_t{0}));
  n.out(0, n.g().cast(n.in(0), host_dtype(to, "its result")));
}

void cast_like(NodeImport& n) { n.out(0, n.g().cast(n.in(0), n.type(n.in(1)).dtype)); }

void clip(NodeImport& n) {
  if (n.version() >= 11) return n.emit("Clip", n.inputs(), n.attrs());
  const gr_dtype_t dtype = n.type(n.in(0)).dtype;
  const auto limit = [&](const char* name) {
    return n.has_attr(name) ? n.g().scalar(n.attr(name, 0.0), dtype) : Value{};
  };
  n.emit("Clip", {n.in(0), limit("min"), limit("max")}, {});
}

/// Before opset 13 the input counts as a matrix: the dims from `axis` on are one row.
void row_wise(NodeImport& n) {
  if (n.version() >= 13) return n.emit(n.node().op.c_str(), n.inputs(), n.attrs());
  const Value x = n.in(0);
  const gr_type_t type = n.type(x);
  const int64_t axis = n.attr("axis", int64_t{1});
  const auto rank = static_cast<int64_t>(type.rank);
  n.require(axis >= -rank && axis <= rank, "axis ", axis, " of a tensor of rank ", rank);
  if (axis == rank - 1 || axis == -1) {
    return n.emit(n.node().op.c_str(), {x}, {{"axis", -1}});
  }
  const Value rows = n.g().node("Flatten", {x}, {{"axis", axis}});
  const Value y = n.g().node(n.node().op.c_str(), {rows}, {{"axis", -1}});
  n.out(0, n.g().node("Reshape", {y, n.g().node("Shape", {x})}, {{"allowzero", 1}}));
}

/// Binary operators of one input each in opset 7 and later broadcast; Min, Max, Sum and Mean took
/// equal shapes alone before opset 8, which broadcasting covers.
void mean(NodeImport& n) {
  Value sum = n.in(0);
  for (size_t k = 1; k < n.input_count(); ++k) sum = n.g().add(sum, n.in(k));
  const gr_dtype_t dtype = n.type(sum).dtype;
  n.out(0, n.g().div(sum, n.g().scalar(static_cast<double>(n.input_count()), dtype)));
}

constexpr RuleEntry kRules[] = {
    {"Cast", cast},           {"CastLike", cast_like}, {"Clip", clip}, {"Softmax", row_wise},
    {"LogSoftmax", row_wise}, {"Hardmax", row_wise},   {"Mean", mean},
};

}  // namespace

std::span<const RuleEntry> element_rules() { return kRules; }

}  // namespace gradrack::onnx
