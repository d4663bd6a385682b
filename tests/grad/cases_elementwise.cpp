// SPDX-License-Identifier: Apache-2.0
// Rows for operators that work element by element, with one input and with several.
#include <cmath>

#include "tests/grad/cases.hpp"

namespace gradrack::test {

std::vector<GradCase> unary_cases() {
  std::vector<GradCase> rows;
  for (const char* op : {"Neg", "Abs", "Exp", "Erf", "Tanh", "Sigmoid", "Relu", "Gelu", "Swish",
                         "Softplus", "LeakyRelu", "Identity"}) {
    rows.push_back(onnx_case(op, "plain", {wrt({2, 3, 5})}));
    rows.push_back(onnx_case(op, "scalar", {wrt({}, 0.5, 1.0)}));
    rows.push_back(onnx_case(op, "empty", {wrt({0, 3})}));
  }
  for (const char* op : {"Sqrt", "Log", "Reciprocal"}) {
    rows.push_back(onnx_case(op, "plain", {wrt({7}, 0.3, 3.0)}));
    rows.push_back(onnx_case(op, "one", {wrt({1, 1}, 0.3, 3.0)}));
    rows.push_back(onnx_case(op, "empty", {wrt({0})}));
  }
  rows.push_back(
      onnx_case("Gelu", "tanh", {wrt({3, 5}, -4, 4)}, {{"approximate", std::string("tanh")}}));
  rows.push_back(onnx_case("Gelu", "wide", {wrt({17}, -8, 8)}));
  rows.push_back(onnx_case("Swish", "alpha", {wrt({9}, -6, 6)}, {{"alpha", 1.702}}));
  rows.push_back(onnx_case("Softplus", "far", {wrt({6}, -40, 40)}));
  rows.push_back(onnx_case("Sigmoid", "far", {wrt({6}, -40, 40)}));
  rows.push_back(onnx_case("LeakyRelu", "alpha", {wrt({9})}, {{"alpha", 0.3}}));
  rows.push_back(own_case("GeluGrad", "plain", {wrt({11}), wrt({11}, -3, 3)}));
  rows.push_back(own_case("GeluGrad", "tanh", {wrt({11}), wrt({11}, -3, 3)},
                          {{"approximate", std::string("tanh")}}));
  rows.push_back(own_case("SwishGrad", "plain", {wrt({11}), wrt({11}, -3, 3)}));
  rows.push_back(own_case("SwishGrad", "alpha", {wrt({5}), wrt({5})}, {{"alpha", -0.5}}));
  rows.push_back(own_case("Copy", "plain", {wrt({2, 3})}));
  rows.push_back(onnx_case("Cast", "same", {wrt({4})}, {{"to", int64_t{GR_FLOAT64}}}));
  rows.push_back(onnx_case("Clip", "both", {wrt({11}), wrt_of({}, {-0.9}), wrt_of({}, {1.1})}));
  rows.push_back(onnx_case("Clip", "low", {wrt({2, 5}), wrt_of({}, {-0.9})}));
  rows.push_back(onnx_case("Clip", "high", {wrt({2, 5}), missing(), wrt_of({}, {0.9})}));
  rows.push_back(onnx_case("Clip", "none", {wrt({3})}));
  rows.push_back(onnx_case("Clip", "crossed", {wrt({7}), wrt_of({}, {1.1}), wrt_of({}, {0.4})}));
  return rows;
}

namespace {

void add_arithmetic(std::vector<GradCase>* rows) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"}) {
    rows->push_back(onnx_case(op, "same", {wrt({3, 5}), wrt({3, 5}, 0.31, 2.3)}));
    rows->push_back(onnx_case(op, "row", {wrt({2, 3, 5}), wrt({5}, 0.31, 2.3)}));
    rows->push_back(onnx_case(op, "column", {wrt({3, 1}), wrt({1, 5}, 0.31, 2.3)}));
    rows->push_back(onnx_case(op, "scalar", {wrt({}, 0.41, 2.0), wrt({2, 3}, 0.31, 2.3)}));
    rows->push_back(onnx_case(op, "empty", {wrt({0, 3}), wrt({3}, 0.31, 2.3)}));
    rows->push_back(onnx_case(op, "one", {wrt({1}), wrt({1, 1}, 0.31, 2.3)}));
  }
  for (const char* op : {"Max", "Min", "Sum"}) {
    rows->push_back(onnx_case(op, "three", {wrt({2, 3}), wrt({3}, 0.31, 2.3), wrt({2, 1}, -1, 1)}));
    rows->push_back(onnx_case(op, "single", {wrt({4})}));
  }
}

void add_pow(std::vector<GradCase>* rows) {
  rows->push_back(onnx_case("Pow", "both", {wrt({2, 3}, 0.4, 2.5), wrt({3}, -1.5, 2.5)}));
  rows->push_back(onnx_case("Pow", "square_at_0", {wrt_of({3}, {-1.5, 0.0, 2.0}), number(2)}));
  rows->push_back(onnx_case("Pow", "cube_at_0", {wrt_of({3}, {-1.5, 0.0, 2.0}), number(3)}));
  rows->push_back(onnx_case("Pow", "zero_at_0", {wrt_of({3}, {-1.5, 0.0, 2.0}), number(0)}));
  rows->push_back(onnx_case("Pow", "one_at_0", {wrt_of({3}, {-1.5, 0.0, 2.0}), number(1)}));
  rows->push_back(onnx_case("Pow", "root", {wrt({5}, 0.3, 3.0), number(0.5)}));
  rows->push_back(onnx_case("Pow", "tensor_exponent_at_0",
                            {wrt_of({4}, {0, 0, 0, 2}), fixed_of({4}, {0, 1, 2, 3})}));
  rows->push_back(onnx_case("Pow", "exponent", {fixed_of({3}, {0.0, 0.5, 3.0}), wrt({3}, 1, 2)}));
  rows->push_back(onnx_case("Pow", "int_exponent", {wrt({3}), indices({3}, {2, 0, 3})}));
}

}  // namespace

std::vector<GradCase> binary_cases() {
  std::vector<GradCase> rows;
  add_arithmetic(&rows);
  add_pow(&rows);
  rows.push_back(onnx_case("Where", "same", {bools({4}, {1, 0, 0, 1}), wrt({4}), wrt({4}, -1, 1)}));
  rows.push_back(onnx_case("Where", "broadcast", {bools({2, 1}, {1, 0}), wrt({3}), wrt({}, 1, 2)}));
  rows.push_back(onnx_case("Where", "empty", {bools({0}, {}), wrt({0}), wrt({}, 1, 2)}));
  return rows;
}

}  // namespace gradrack::test
