// SPDX-License-Identifier: Apache-2.0
// Rows for operators that pick by index and for reductions.
#include "tests/grad/cases.hpp"

namespace gradrack::test {

std::vector<GradCase> index_cases() {
  const Attrs axis_1 = {{"axis", int64_t{1}}};
  const Attrs add_1 = {{"axis", int64_t{1}}, {"reduction", std::string("add")}};
  std::vector<GradCase> rows;
  rows.push_back(onnx_case("Gather", "rows", {wrt({5, 3}), indices({2, 2}, {4, 0, -1, 4})}));
  rows.push_back(onnx_case("Gather", "columns", {wrt({2, 5}), indices({3}, {1, 1, -5})}, axis_1));
  rows.push_back(onnx_case("Gather", "scalar", {wrt({4, 2}), indices({}, {2})}));
  rows.push_back(onnx_case("Gather", "nothing", {wrt({4, 2}), indices({0}, {})}));
  rows.push_back(own_case("GatherGrad", "rows",
                          {wrt({2, 2, 3}), indices({2, 2}, {4, 0, -1, 4}), known({5, 3})}));
  rows.push_back(own_case("GatherGrad", "columns",
                          {wrt({2, 3}), indices({3}, {1, 1, 0}), known({2, 5})}, axis_1));
  rows.push_back(onnx_case("GatherElements", "plain",
                           {wrt({2, 4}), indices({2, 3}, {0, 3, -1, 2, 2, 1})}, axis_1));
  rows.push_back(onnx_case("GatherElements", "shorter", {wrt({3, 2}), indices({1, 2}, {2, 0})}));
  rows.push_back(onnx_case("GatherElements", "nothing", {wrt({3, 2}), indices({0, 2}, {})}));
  rows.push_back(onnx_case("ScatterElements", "none",
                           {wrt({2, 4}), indices({2, 2}, {0, 3, -1, 1}), wrt({2, 2}, -1, 1)},
                           axis_1));
  rows.push_back(onnx_case("ScatterElements", "add",
                           {wrt({2, 4}), indices({2, 3}, {0, 3, 0, 1, 1, -3}), wrt({2, 3}, -1, 1)},
                           add_1));
  rows.push_back(
      onnx_case("ScatterElements", "nothing", {wrt({2, 4}), indices({0, 4}, {}), wrt({0, 4})}));
  return rows;
}

std::vector<GradCase> reduce_cases() {
  const Attrs drop = {{"keepdims", int64_t{0}}};
  const Attrs noop = {{"noop_with_empty_axes", int64_t{1}}};
  std::vector<GradCase> rows;
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    rows.push_back(onnx_case(op, "all", {wrt({2, 3, 4})}));
    rows.push_back(onnx_case(op, "all_dropped", {wrt({2, 3})}, drop));
    rows.push_back(onnx_case(op, "middle", {wrt({2, 3, 4}), known({1})}));
    rows.push_back(onnx_case(op, "two_dropped", {wrt({2, 3, 4}), known({-1, 0})}, drop));
    rows.push_back(onnx_case(op, "noop", {wrt({2, 3})}, noop));
    rows.push_back(onnx_case(op, "one", {wrt({1, 1}), known({0})}));
    rows.push_back(onnx_case(op, "scalar", {wrt({}, 1, 2)}, drop));
    rows.push_back(onnx_case(op, "empty_kept", {wrt({0, 3}), known({1})}));
  }
  rows.push_back(onnx_case("ReduceSum", "over_nothing", {wrt({0, 3}), known({0})}));
  return rows;
}

}  // namespace gradrack::test
