// SPDX-License-Identifier: Apache-2.0
// Rows for network operators that models made elsewhere bring: padding modes, resizing, transposed
// convolution, norms and pools, losses, products by equation, recurrent cells.
#include "tests/grad/cases.hpp"

namespace gradrack::test {

namespace {

using Ints = std::vector<int64_t>;

Attrs named(const char* name, const char* value) { return {{name, std::string(value)}}; }

void add_pads(std::vector<GradCase>* rows) {
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    rows->push_back(
        own_case("PadMode", mode, {wrt({3, 4}), known({1, 2, 2, 3})}, named("mode", mode)));
  }
  rows->push_back(
      own_case("PadMode", "cut", {wrt({3, 5}), known({-1, 2, 1, -2}), wrt_of({}, {0.5})}));
  rows->push_back(own_case("PadMode", "axes", {wrt({2, 3}), known({1, 2}), missing(), known({-1})},
                           named("mode", "edge")));
}

void add_resize(std::vector<GradCase>* rows) {
  const auto row = [&](const char* note, CaseInput x, std::vector<double> scales, Attrs attrs) {
    attrs.set("scales", std::move(scales));
    rows->push_back(onnx_case("Resize", note, {std::move(x)}, std::move(attrs)));
  };
  row("nearest", wrt({1, 2, 3, 2}), {1, 1, 2, 1.5}, {});
  row("linear", wrt({1, 1, 3, 4}), {1, 1, 2, 0.6}, named("mode", "linear"));
  row("cubic", wrt({1, 4, 5}), {1, 1.7, 0.5}, named("mode", "cubic"));
  Attrs antialias = named("mode", "linear");
  antialias.set("antialias", int64_t{1});
  row("antialias", wrt({7}), {0.4}, antialias);
  Attrs corners = named("coordinate_transformation_mode", "align_corners");
  corners.set("mode", std::string("linear"));
  rows->push_back(onnx_case("Resize", "sizes", {wrt({2, 3}), known({2, 5})}, corners));
}

void add_convolutions(std::vector<GradCase>* rows) {
  const auto row = [&](const char* note, std::vector<CaseInput> inputs, Attrs attrs) {
    rows->push_back(onnx_case("ConvTranspose", note, std::move(inputs), std::move(attrs)));
  };
  row("plain", {wrt({1, 2, 3, 2}), wrt({2, 3, 2, 2}, -1, 1), wrt({3})}, {});
  row("strides", {wrt({1, 2, 3}), wrt({2, 1, 3}, -1, 1)},
      {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"output_padding", Ints{1}}});
  row("behind", {wrt({1, 1, 3}), wrt({1, 1, 2}, -1, 1)},
      {{"strides", Ints{3}}, {"output_padding", Ints{2}}});
  row("groups", {wrt({2, 4, 2, 2}), wrt({4, 1, 2, 2}, -1, 1)}, {{"group", int64_t{2}}});
  row("same", {wrt({1, 1, 3}), wrt({1, 2, 3}, -1, 1)},
      {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}});
  row("shape", {wrt({1, 1, 3}), wrt({1, 1, 3}, -1, 1)},
      {{"output_shape", Ints{8}}, {"strides", Ints{3}}});
}

void add_norms_and_pools(std::vector<GradCase>* rows) {
  rows->push_back(
      onnx_case("InstanceNormalization", "plain", {wrt({2, 3, 2, 2}), wrt({3}, 0.5, 2), wrt({3})}));
  rows->push_back(
      onnx_case("LRN", "odd", {wrt({1, 5, 2, 2})}, {{"size", int64_t{3}}, {"alpha", 0.3}}));
  rows->push_back(onnx_case("LRN", "even", {wrt({2, 3, 2})}, {{"size", int64_t{2}}}));
  for (const int64_t p : {1, 2}) {
    const std::string note = "p" + std::to_string(p);
    rows->push_back(
        onnx_case("LpNormalization", note, {wrt({3, 4})}, {{"axis", int64_t{0}}, {"p", p}}));
    rows->push_back(onnx_case("GlobalLpPool", note, {wrt({2, 2, 3})}, {{"p", p}}));
    rows->push_back(onnx_case("LpPool", note, {wrt({1, 2, 4, 3})},
                              {{"kernel_shape", Ints{2, 2}}, {"p", p}, {"strides", Ints{2, 1}}}));
  }
  rows->push_back(onnx_case("MeanVarianceNormalization", "plain", {wrt({2, 2, 2, 3})}));
  rows->push_back(onnx_case("GlobalMaxPool", "plain", {wrt({2, 2, 3, 2})}));
}

void add_grids(std::vector<GradCase>* rows) {
  const auto row = [&](const char* note, const char* mode, const char* padding, int64_t aligned) {
    Attrs attrs = named("mode", mode);
    attrs.set("padding_mode", std::string(padding));
    attrs.set("align_corners", aligned);
    CaseInput grid = wrt({1, 2, 3, 2}, -1.3, 1.2);
    grid.differentiable = std::string(mode) != "nearest";
    rows->push_back(onnx_case("GridSample", note, {wrt({1, 2, 3, 4}), grid}, attrs));
  };
  row("linear", "linear", "zeros", 0);
  row("border", "linear", "border", 1);
  row("reflection", "linear", "reflection", 0);
  row("cubic", "cubic", "zeros", 1);
  row("nearest", "nearest", "border", 0);
  rows->push_back(onnx_case("AffineGrid", "plane", {wrt({2, 2, 3}), known({2, 1, 2, 3})}));
  rows->push_back(onnx_case("CenterCropPad", "both", {wrt({5, 2}), known({2, 5})}));
}

void add_losses(std::vector<GradCase>* rows) {
  for (const char* reduction : {"none", "sum", "mean"}) {
    Attrs attrs = named("reduction", reduction);
    const std::string name = reduction;
    rows->push_back(onnx_case("NegativeLogLikelihoodLoss", name,
                              {wrt({3, 4}), indices({3}, {1, 3, 0})}, attrs));
    attrs.set("ignore_index", int64_t{-1});
    rows->push_back(onnx_case("NegativeLogLikelihoodLoss", name + "_weights",
                              {wrt({2, 3, 2}), indices({2, 2}, {1, -1, 0, 2}), wrt({3}, 0.5, 2)},
                              attrs));
  }
}

void add_einsum(std::vector<GradCase>* rows) {
  const auto row = [&](const char* note, const char* equation, std::vector<CaseInput> inputs) {
    rows->push_back(onnx_case("Einsum", note, std::move(inputs), named("equation", equation)));
  };
  row("product", "ij,jk->ik", {wrt({2, 3}), wrt({3, 4}, -1, 1)});
  row("batch", "bhid,bhjd->bhij", {wrt({2, 1, 2, 3}), wrt({2, 1, 4, 3}, -1, 1)});
  row("implied", "ij,j", {wrt({2, 3}), wrt({3}, -1, 1)});
  row("transpose", "abc->cab", {wrt({2, 3, 2})});
  row("sum", "ij->", {wrt({2, 3})});
  row("diagonal", "...ii->...i", {wrt({2, 3, 3})});
  row("ellipsis", "...ij,...jk", {wrt({2, 2, 3}), wrt({1, 3, 2}, -1, 1)});
  row("outer", "i,j->ji", {wrt({2}), wrt({3}, -1, 1)});
  row("three", "ij,jk,kl->il", {wrt({2, 2}), wrt({2, 3}, -1, 1), wrt({3, 2}, 0.1, 1)});
}

void add_recurrent(std::vector<GradCase>* rows) {
  struct Kind {
    const char* op;
    int64_t gates;
    size_t outputs;
  };
  for (const Kind& kind : {Kind{"RNN", 1, 2}, Kind{"GRU", 3, 2}, Kind{"LSTM", 4, 3}}) {
    const int64_t rows_of_w = kind.gates * 2;
    GradCase row =
        onnx_case(kind.op, "forward",
                  {wrt({3, 2, 2}), wrt({1, rows_of_w, 2}, -1, 1), wrt({1, rows_of_w, 2}, -0.9, 0.8),
                   wrt({1, 2 * rows_of_w}, -0.5, 0.6)});
    row.outputs = kind.outputs;
    rows->push_back(row);
    row =
        onnx_case(kind.op, "both_ways",
                  {wrt({2, 2, 2}), wrt({2, rows_of_w, 2}, -1, 1), wrt({2, rows_of_w, 2}, -0.9, 0.8),
                   missing(), indices({2}, {1, 2}), wrt({2, 2, 2}, -1, 1)},
                  {{"direction", std::string("bidirectional")}});
    row.outputs = kind.outputs;
    rows->push_back(row);
  }
  GradCase row = onnx_case("LSTM", "peepholes",
                           {wrt({2, 3, 2}), wrt({1, 8, 2}, -1, 1), wrt({1, 8, 2}, -0.9, 0.8),
                            missing(), missing(), missing(), missing(), wrt({1, 6}, -0.4, 0.5)},
                           {{"layout", int64_t{1}}});
  row.outputs = 3;
  rows->push_back(row);
  row = onnx_case(
      "GRU", "linear",
      {wrt({2, 1, 2}), wrt({1, 6, 2}, -1, 1), wrt({1, 6, 2}, -0.9, 0.8), wrt({1, 12}, -0.5, 0.6)},
      {{"linear_before_reset", int64_t{1}}});
  row.outputs = 2;
  rows->push_back(row);
}

}  // namespace

std::vector<GradCase> more_nn_cases() {
  std::vector<GradCase> rows;
  add_pads(&rows);
  add_resize(&rows);
  add_convolutions(&rows);
  add_norms_and_pools(&rows);
  add_grids(&rows);
  add_losses(&rows);
  add_einsum(&rows);
  add_recurrent(&rows);
  return rows;
}

}  // namespace gradrack::test
