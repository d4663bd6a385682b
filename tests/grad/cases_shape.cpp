// SPDX-License-Identifier: Apache-2.0
// Rows for operators that change shapes, cut and join.
#include "tests/grad/cases.hpp"

namespace gradrack::test {

namespace {
using Ints = std::vector<int64_t>;
}  // namespace

std::vector<GradCase> shape_cases() {
  std::vector<GradCase> rows;
  rows.push_back(onnx_case("Reshape", "infer", {wrt({2, 3, 4}), known({0, -1})}));
  rows.push_back(onnx_case("Reshape", "to_scalar", {wrt({1, 1}), known({})}));
  rows.push_back(onnx_case("Reshape", "empty", {wrt({0, 8, 2}), known({4, 2, -1})}));
  rows.push_back(onnx_case("Flatten", "axis_2", {wrt({2, 3, 4})}, {{"axis", int64_t{2}}}));
  rows.push_back(onnx_case("Flatten", "axis_0", {wrt({2, 3})}, {{"axis", int64_t{0}}}));
  rows.push_back(onnx_case("Squeeze", "axes", {wrt({1, 3, 1}), known({-1})}));
  rows.push_back(onnx_case("Squeeze", "all", {wrt({1, 3, 1})}));
  rows.push_back(onnx_case("Unsqueeze", "axes", {wrt({2, 3}), known({0, -1})}));
  rows.push_back(onnx_case("Transpose", "reversed", {wrt({2, 3, 4})}));
  rows.push_back(onnx_case("Transpose", "cycle", {wrt({2, 3, 4})}, {{"perm", Ints{1, 2, 0}}}));
  rows.push_back(
      onnx_case("Transpose", "heads", {wrt({2, 3, 2, 2})}, {{"perm", Ints{0, 2, 1, 3}}}));
  rows.push_back(onnx_case("Transpose", "empty", {wrt({0, 3})}));
  rows.push_back(onnx_case("Transpose", "scalar", {wrt({}, 1, 2)}));
  rows.push_back(onnx_case("Expand", "row", {wrt({3}), known({2, 3})}));
  rows.push_back(onnx_case("Expand", "middle", {wrt({2, 1, 3}), known({2, 4, 1})}));
  rows.push_back(onnx_case("Expand", "scalar", {wrt({}, 1, 2), known({2, 2})}));
  rows.push_back(onnx_case("Constant", "int", {}, {{"value_int", int64_t{-3}}}));
  rows.push_back(onnx_case("Constant", "ints", {}, {{"value_ints", Ints{4, 5}}}));
  rows.push_back(onnx_case("Constant", "float", {}, {{"value_float", 2.5}}));
  rows.push_back(
      onnx_case("Constant", "floats", {}, {{"value_floats", std::vector<double>{0.5, -1}}}));
  rows.push_back(own_case("After", "plain", {wrt({2, 3}), fixed({2})}));
  rows.push_back(onnx_case("Expand", "to_empty", {wrt({1, 3}), known({0, 3})}));
  return rows;
}

namespace {

void add_slices(std::vector<GradCase>* rows) {
  rows->push_back(onnx_case("Slice", "plain",
                            {wrt({4, 5}), known({1, 0}), known({3, INT64_MAX}), known({0, 1})}));
  rows->push_back(onnx_case("Slice", "no_axes", {wrt({4, 5}), known({1, -3}), known({-1, -1})}));
  rows->push_back(
      onnx_case("Slice", "step", {wrt({7}), known({1}), known({7}), known({0}), known({3})}));
  rows->push_back(
      onnx_case("Slice", "backwards",
                {wrt({2, 7}), known({-1}), known({INT64_MIN}), known({1}), known({-2})}));
  rows->push_back(onnx_case("Slice", "nothing", {wrt({4}), known({3}), known({1})}));
  rows->push_back(onnx_case("Slice", "empty", {wrt({0, 4}), known({1}), known({3}), known({1})}));
  rows->push_back(own_case("SliceGrad", "plain",
                           {wrt({2, 3}), known({4, 3}), known({1}), known({3}), known({0})}));
  rows->push_back(
      own_case("SliceGrad", "backwards",
               {wrt({4}), known({7}), known({-1}), known({INT64_MIN}), known({0}), known({-2})}));
}

void add_pads(std::vector<GradCase>* rows) {
  rows->push_back(onnx_case("Pad", "zeros", {wrt({2, 3}), known({1, 0, 0, 2})}));
  rows->push_back(onnx_case("Pad", "value", {wrt({2, 3}), known({1, 1, 1, 1}), wrt({}, 1, 2)}));
  rows->push_back(onnx_case("Pad", "axes", {wrt({2, 3}), known({2, 1}), missing(), known({-1})}));
  rows->push_back(onnx_case("Pad", "empty", {wrt({0, 2}), known({1, 0, 1, 0}), wrt({}, 1, 2)}));
}

void add_joins(std::vector<GradCase>* rows) {
  rows->push_back(onnx_case("Concat", "first", {wrt({2, 3}), wrt({1, 3}), wrt({2, 3}, -1, 1)},
                            {{"axis", int64_t{0}}}));
  rows->push_back(onnx_case("Concat", "last", {wrt({2, 3}), fixed({2, 2}), wrt({2, 1})},
                            {{"axis", int64_t{-1}}}));
  rows->push_back(onnx_case("Concat", "empty", {wrt({2, 0}), wrt({2, 2})}, {{"axis", int64_t{1}}}));
  rows->push_back(onnx_case("Concat", "one", {wrt({3})}, {{"axis", int64_t{0}}}));
  const auto split = [](std::string note, std::vector<CaseInput> inputs, Attrs attrs,
                        size_t count) {
    GradCase row = onnx_case("Split", std::move(note), std::move(inputs), std::move(attrs));
    row.outputs = count;
    return row;
  };
  rows->push_back(split("sizes", {wrt({2, 6}), known({1, 3, 2})}, {{"axis", int64_t{1}}}, 3));
  rows->push_back(split("equal", {wrt({6, 2})}, {{"num_outputs", int64_t{3}}}, 3));
  rows->push_back(split("short_last", {wrt({7})}, {{"num_outputs", int64_t{3}}}, 3));
  rows->push_back(split("with_empty", {wrt({3, 2}), known({0, 3})}, {}, 2));
}

}  // namespace

std::vector<GradCase> slice_cases() {
  std::vector<GradCase> rows;
  add_slices(&rows);
  add_pads(&rows);
  add_joins(&rows);
  return rows;
}

}  // namespace gradrack::test
