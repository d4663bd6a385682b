// SPDX-License-Identifier: Apache-2.0
// Rows for the operators that models made elsewhere bring: activations, circular functions, norms
// as reductions, fills, scans, tuples of indices, blocks moved.
#include <cmath>

#include "tests/grad/cases.hpp"

namespace gradrack::test {

std::vector<GradCase> more_elementwise_cases() {
  std::vector<GradCase> rows;
  for (const char* op :
       {"Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Mish", "Softsign", "ThresholdedRelu",
        "Shrink", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh"}) {
    rows.push_back(onnx_case(op, "plain", {wrt({3, 5}, -1.4, 1.4)}));
    rows.push_back(onnx_case(op, "empty", {wrt({0, 3})}));
  }
  for (const char* op : {"Asin", "Acos", "Atanh"}) {
    rows.push_back(onnx_case(op, "plain", {wrt({11}, -0.9, 0.9)}));
  }
  rows.push_back(onnx_case("Acosh", "plain", {wrt({7}, 1.1, 4.0)}));
  rows.push_back(onnx_case("Elu", "far", {wrt({5}, -900, 900)}, {{"alpha", 1.5}}));
  rows.push_back(onnx_case("Celu", "alpha", {wrt({7}, -4, 4)}, {{"alpha", 2.5}}));
  rows.push_back(onnx_case("HardSigmoid", "wide", {wrt({9}, -4, 4)}, {{"alpha", 0.4}}));
  rows.push_back(onnx_case("HardSwish", "wide", {wrt({9}, -5, 5)}));
  rows.push_back(onnx_case("Shrink", "bias", {wrt({9})}, {{"bias", 0.3}, {"lambd", 1.1}}));
  rows.push_back(onnx_case("PRelu", "channel", {wrt({2, 3, 4}), wrt({3, 1}, 0.1, 0.9)}));
  rows.push_back(onnx_case("Hardmax", "rows", {fixed({3, 4})}));
  rows.push_back(onnx_case("Ceil", "plain", {fixed({7}, -3, 3)}));
  rows.push_back(onnx_case("Round", "halves", {fixed_of({6}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.6})}));
  rows.push_back(onnx_case("IsInf", "some", {fixed_of({4}, {-INFINITY, 1.0, NAN, INFINITY})}));
  rows.push_back(onnx_case("CastLike", "same", {wrt({4}), fixed({2})}));
  rows.push_back(onnx_case("CastLike", "ints", {fixed({4}), indices({2}, {1, 2})}));
  rows.push_back(onnx_case("Size", "plain", {fixed({2, 3})}));
  rows.push_back(onnx_case("Mean", "three", {wrt({2, 3}), wrt({3}, 0.3, 2), wrt({2, 1}, -1, 1)}));
  rows.push_back(onnx_case(
      "Mod", "fmod", {wrt_of({4}, {5.3, -5.3, 2.2, -0.7}), wrt_of({4}, {2.1, 1.9, -0.8, 3.0})},
      {{"fmod", int64_t{1}}}));
  return rows;
}

namespace {

void add_norms(std::vector<GradCase>* rows) {
  const Attrs drop = {{"keepdims", int64_t{0}}};
  for (const char* op :
       {"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceProd"}) {
    rows->push_back(onnx_case(op, "all", {wrt({2, 3, 4})}));
    rows->push_back(onnx_case(op, "middle_dropped", {wrt({2, 5, 3}), known({1})}, drop));
    rows->push_back(onnx_case(op, "two", {wrt({2, 3, 4}), known({-1, 0})}));
  }
  rows->push_back(onnx_case("ReduceLogSum", "last", {wrt({2, 4}, 0.3, 2.0), known({-1})}));
  rows->push_back(onnx_case("ReduceProd", "zero", {wrt_of({4}, {2.0, 0.0, -1.5, 3.0})}));
  rows->push_back(onnx_case("ReduceProd", "nothing", {wrt({0, 3}), known({0})}));
  rows->push_back(onnx_case("ReduceLogSumExp", "far", {wrt_of({3}, {900.0, 899.0, -900.0})}));
  rows->push_back(onnx_case("ArgMin", "rows", {fixed({3, 5})}, {{"axis", int64_t{1}}}));
}

void add_scans(std::vector<GradCase>* rows) {
  for (const char* op : {"CumSum", "CumProd"}) {
    rows->push_back(onnx_case(op, "rows", {wrt({2, 5}), known({1})}));
    rows->push_back(
        onnx_case(op, "reverse", {wrt({2, 5}), known({-1})}, {{"reverse", int64_t{1}}}));
    rows->push_back(
        onnx_case(op, "exclusive", {wrt({4, 2}), known({0})}, {{"exclusive", int64_t{1}}}));
    rows->push_back(onnx_case(op, "one", {wrt({1, 3}), known({0})},
                              {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}}));
  }
}

}  // namespace

std::vector<GradCase> more_index_cases() {
  std::vector<GradCase> rows;
  add_norms(&rows);
  add_scans(&rows);
  rows.push_back(onnx_case("ConstantOfShape", "plain", {known({2, 3})},
                           {{"value", 2.5}, {"dtype", int64_t{GR_FLOAT64}}}));
  rows.push_back(onnx_case("Range", "down", {known({5}), known({-2}), known({-3})}));
  rows.push_back(onnx_case("Range", "reals", {number(1.0), number(4.2), number(0.5)}));
  rows.push_back(onnx_case("EyeLike", "above", {fixed({3, 4})}, {{"k", int64_t{1}}}));
  rows.push_back(onnx_case("OneHot", "last",
                           {indices({2, 2}, {0, -1, 2, 7}), known({3}), wrt_of({2}, {0.25, 1.5})}));
  rows.push_back(onnx_case("OneHot", "first",
                           {indices({2}, {1, 0}), known({3}), wrt_of({2}, {0.25, 1.5})},
                           {{"axis", int64_t{0}}}));
  rows.push_back(onnx_case("Tile", "two_axes", {wrt({2, 1, 3}), known({2, 1, 3})}));
  rows.push_back(onnx_case("Tile", "nothing", {wrt({2, 3}), known({0, 2})}));
  rows.push_back(onnx_case("GatherND", "elements", {wrt({2, 3}), indices({2, 2}, {0, -1, 1, 0})}));
  rows.push_back(onnx_case("GatherND", "slices", {wrt({3, 2, 2}), indices({2, 1}, {2, -3})}));
  rows.push_back(onnx_case("GatherND", "batch", {wrt({2, 3, 2}), indices({2, 1}, {2, 0})},
                           {{"batch_dims", int64_t{1}}}));
  const Attrs add = {{"reduction", std::string("add")}};
  rows.push_back(
      onnx_case("ScatterND", "none", {wrt({4, 2}), indices({2, 1}, {3, -4}), wrt({2, 2}, -1, 1)}));
  rows.push_back(onnx_case("ScatterND", "add",
                           {wrt({3, 2}), indices({3, 2}, {0, 1, 0, 1, 2, 0}), wrt({3}, -1, 1)},
                           add));
  GradCase top = onnx_case("TopK", "rows", {wrt({3, 5}), known({2})});
  top.outputs = 2;
  rows.push_back(top);
  top = onnx_case("TopK", "smallest", {wrt({4, 3}), known({3})},
                  {{"axis", int64_t{0}}, {"largest", int64_t{0}}});
  top.outputs = 2;
  rows.push_back(top);
  rows.push_back(
      onnx_case("DepthToSpace", "dcr", {wrt({1, 8, 2, 1})}, {{"blocksize", int64_t{2}}}));
  rows.push_back(onnx_case("DepthToSpace", "crd", {wrt({1, 8, 1, 2})},
                           {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}));
  rows.push_back(
      onnx_case("SpaceToDepth", "plain", {wrt({1, 2, 4, 2})}, {{"blocksize", int64_t{2}}}));
  rows.push_back(
      onnx_case("ReverseSequence", "time_first", {wrt({4, 2, 2}), indices({2}, {3, 1})}));
  return rows;
}

}  // namespace gradrack::test
