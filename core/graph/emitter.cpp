// SPDX-License-Identifier: Apache-2.0
// Emitter: see emitter.hpp.
#include "core/graph/emitter.hpp"

namespace gradrack {

void Emitter::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

const Type& Emitter::type(ValueId id) const {
  static const Type kNone;
  return graph_.has(id) ? graph_.value(id).type : kNone;
}

std::vector<ValueId> Emitter::multi(std::string_view domain, std::string_view name,
                                    std::vector<ValueId> inputs, Attrs attrs, size_t count) {
  if (status_.ok()) {
    auto result = graph_.add_node(domain, name, std::move(inputs), std::move(attrs), count);
    if (result.ok()) return *result;
    fail(result.status());
  }
  return std::vector<ValueId>(count, GR_NO_VALUE);
}

ValueId Emitter::op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  return multi("", name, std::move(inputs), std::move(attrs), 1)[0];
}

ValueId Emitter::own(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  return multi("gradrack", name, std::move(inputs), std::move(attrs), 1)[0];
}

ValueId Emitter::constant(gr_dtype_t dtype, double number) {
  if (!status_.ok()) return GR_NO_VALUE;
  ConstantData data;
  if (is_real(dtype)) {
    data.reals = {number};
  } else {
    data.ints = {static_cast<int64_t>(number)};
  }
  auto result = graph_.add_constant(Type{dtype, {}}, std::move(data));
  if (!result.ok()) fail(result.status());
  return result.ok() ? *result : static_cast<ValueId>(GR_NO_VALUE);
}

ValueId Emitter::like(ValueId x, double number) {
  return status_.ok() ? constant(type(x).dtype, number) : static_cast<ValueId>(GR_NO_VALUE);
}

ValueId Emitter::ints(const std::vector<int64_t>& numbers) {
  if (!status_.ok()) return GR_NO_VALUE;
  ConstantData data;
  data.ints = numbers;
  const Type type{GR_INT64, {Dim(static_cast<int64_t>(numbers.size()))}};
  auto result = graph_.add_constant(type, std::move(data));
  if (!result.ok()) fail(result.status());
  return result.ok() ? *result : static_cast<ValueId>(GR_NO_VALUE);
}

ValueId Emitter::cast(ValueId a, gr_dtype_t dtype) {
  if (!status_.ok()) return GR_NO_VALUE;
  return type(a).dtype == dtype ? a : op("Cast", {a}, {{"to", int64_t{dtype}}});
}

ValueId Emitter::transpose(ValueId x, const std::vector<int64_t>& perm) {
  return op("Transpose", {x}, {{"perm", perm}});
}

ValueId Emitter::squeeze(ValueId x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : op("Squeeze", {x, ints(axes)});
}

ValueId Emitter::unsqueeze(ValueId x, const std::vector<int64_t>& axes) {
  return axes.empty() ? x : op("Unsqueeze", {x, ints(axes)});
}

ValueId Emitter::reduce_sum(ValueId x, const std::vector<int64_t>& axes, bool keepdims) {
  return axes.empty() ? x : op("ReduceSum", {x, ints(axes)}, {{"keepdims", int64_t{keepdims}}});
}

ValueId Emitter::reduce_mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims) {
  return axes.empty() ? x : op("ReduceMean", {x, ints(axes)}, {{"keepdims", int64_t{keepdims}}});
}

ValueId Emitter::reduce_max(ValueId x, const std::vector<int64_t>& axes, bool keepdims) {
  return axes.empty() ? x : op("ReduceMax", {x, ints(axes)}, {{"keepdims", int64_t{keepdims}}});
}

ValueId Emitter::sum_to(ValueId x, ValueId target) {
  if (!status_.ok()) return GR_NO_VALUE;
  const Shape from = shape(x);
  const Shape to = shape(target);
  if (from == to) return x;
  if (from.size() < to.size()) {
    fail(internal_error("sum_to: " + to_text(from) + " is not a broadcast of " + to_text(to)));
    return GR_NO_VALUE;
  }
  const size_t extra = from.size() - to.size();
  std::vector<int64_t> leading, kept;
  for (size_t k = 0; k < from.size(); ++k) {
    if (k < extra) {
      leading.push_back(static_cast<int64_t>(k));
    } else if (!(from[k] == to[k - extra])) {
      kept.push_back(static_cast<int64_t>(k - extra));
    }
  }
  return reduce_sum(reduce_sum(x, leading, false), kept, true);
}

ValueId Emitter::matmul(ValueId a, ValueId b, bool trans_a, bool trans_b, double alpha) {
  return own("FusedMatMul", {a, b},
             {{"transA", int64_t{trans_a}}, {"transB", int64_t{trans_b}}, {"alpha", alpha}});
}

}  // namespace gradrack
