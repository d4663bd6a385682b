// SPDX-License-Identifier: Apache-2.0
// Emitter: writes nodes into a graph with one call an operator, for gradient rules, decompositions,
// clipping and the like.
//
// Invariant: the first error sticks; after it every call returns GR_NO_VALUE and does nothing, so
// that rules read as formulas and `status()` is looked at once at the end.
#pragma once

#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack {

class Emitter {
 public:
  explicit Emitter(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  const Status& status() const { return status_; }
  void fail(Status status);

  /// Type of a value; an empty one after an error, so that rules need no checks.
  const Type& type(ValueId id) const;
  const Shape& shape(ValueId id) const { return type(id).shape; }
  size_t rank(ValueId id) const { return shape(id).size(); }

  /// Any operator with one output wanted.
  ValueId op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {});
  /// An operator of domain "gradrack" with one output wanted.
  ValueId own(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {});
  /// `count` outputs; ids are GR_NO_VALUE after an error.
  std::vector<ValueId> multi(std::string_view domain, std::string_view name,
                             std::vector<ValueId> inputs, Attrs attrs, size_t count);

  // Constants.
  ValueId constant(gr_dtype_t dtype, double number);  ///< scalar []
  ValueId like(ValueId x, double number);             ///< scalar of x's dtype
  ValueId ints(const std::vector<int64_t>& numbers);  ///< int64 [n]

  // Arithmetic with broadcasting.
  ValueId add(ValueId a, ValueId b) { return op("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op("Div", {a, b}); }
  ValueId add(ValueId a, double b) { return add(a, like(a, b)); }
  ValueId sub(double a, ValueId b) { return sub(like(b, a), b); }
  ValueId mul(ValueId a, double b) { return mul(a, like(a, b)); }
  ValueId div(double a, ValueId b) { return div(like(b, a), b); }
  ValueId neg(ValueId a) { return op("Neg", {a}); }
  ValueId cast(ValueId a, gr_dtype_t dtype);  ///< a itself when it has the dtype

  // Shapes.
  ValueId shape_of(ValueId x) { return op("Shape", {x}); }
  ValueId reshape(ValueId x, ValueId shape) { return op("Reshape", {x, shape}); }
  ValueId reshape(ValueId x, const std::vector<int64_t>& dims) { return reshape(x, ints(dims)); }
  /// A dimension of 0 in `other` means 0 here, not "copy".
  ValueId reshape_like(ValueId x, ValueId other) {
    return op("Reshape", {x, shape_of(other)}, {{"allowzero", int64_t{1}}});
  }
  ValueId expand_like(ValueId x, ValueId other) { return op("Expand", {x, shape_of(other)}); }
  ValueId transpose(ValueId x, const std::vector<int64_t>& perm);
  ValueId squeeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId unsqueeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId reduce_sum(ValueId x, const std::vector<int64_t>& axes, bool keepdims);
  ValueId reduce_mean(ValueId x, const std::vector<int64_t>& axes, bool keepdims);
  ValueId reduce_max(ValueId x, const std::vector<int64_t>& axes, bool keepdims);
  /// Sums `x` down to the shape of `target`, which broadcasts to x's: the adjoint of broadcasting.
  ValueId sum_to(ValueId x, ValueId target);
  /// alpha * op(a) @ op(b), batched as MatMul.
  ValueId matmul(ValueId a, ValueId b, bool trans_a = false, bool trans_b = false,
                 double alpha = 1.0);
  ValueId where(ValueId condition, ValueId a, ValueId b) { return op("Where", {condition, a, b}); }

 private:
  Graph& graph_;
  Status status_;
};

}  // namespace gradrack
