// SPDX-License-Identifier: Apache-2.0
// Arithmetic: an optimizer's formulas as nodes of a graph.
//
// Invariant: scalars (learning rate, step, bias corrections) are float64 and meet a tensor in its
// dtype, so that formulas keep their digits in every precision.
#pragma once

#include "gradrack/graph.hpp"

namespace gradrack::sdk {

class Arithmetic {
 public:
  /// `tensor`: the dtype of the tensors that formulas are about.
  Arithmetic(GraphBuilder& g, gr_dtype_t tensor) : g_(g), tensor_(tensor) {}

  // Tensors, and scalars of their dtype.
  Value number(double x) { return g_.scalar(x, tensor_); }
  Value narrow(Value scalar) { return g_.cast(scalar, tensor_); }  ///< of a float64 scalar
  Value add(Value a, Value b) { return g_.add(a, b); }
  Value plus(Value a, double b) { return g_.add(a, number(b)); }
  Value sub(Value a, Value b) { return g_.sub(a, b); }
  Value mul(Value a, Value b) { return g_.mul(a, b); }
  Value times(Value a, double b) { return g_.mul(a, number(b)); }
  Value div(Value a, Value b) { return g_.div(a, b); }
  Value sqrt(Value a) { return g_.node("Sqrt", {a}); }
  Value square(Value a) { return g_.mul(a, a); }
  Value max(Value a, Value b) { return g_.node("Max", {a, b}); }
  Value greater(Value a, Value b) { return g_.node("Greater", {a, b}); }
  Value where(Value condition, Value a, Value b) { return g_.node("Where", {condition, a, b}); }
  /// Over all elements, to a scalar.
  Value sum(Value a) { return g_.node("ReduceSum", {a}, {{"keepdims", 0}}); }
  Value mean(Value a) { return g_.node("ReduceMean", {a}, {{"keepdims", 0}}); }
  Value max(Value a) { return g_.node("ReduceMax", {a}, {{"keepdims", 0}}); }
  /// beta * old + (1 - beta) * fresh.
  Value moving_average(Value old, Value fresh, double beta) {
    return add(times(old, beta), times(fresh, 1 - beta));
  }

  // float64 scalars.
  Value wide(double x) { return g_.scalar(x, GR_FLOAT64); }
  /// 1 - beta^step.
  Value bias_correction(double beta, Value step) {
    return g_.sub(wide(1), g_.node("Pow", {wide(beta), step}));
  }
  /// p (1 - lr weight_decay), `p` and the result tensors.
  Value decayed(Value p, Value lr, double weight_decay) {
    if (weight_decay == 0) return p;
    return mul(p, narrow(g_.sub(wide(1), g_.mul(lr, wide(weight_decay)))));
  }

 private:
  GraphBuilder& g_;
  gr_dtype_t tensor_;
};

}  // namespace gradrack::sdk
