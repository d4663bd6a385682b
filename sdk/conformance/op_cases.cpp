// SPDX-License-Identifier: Apache-2.0
// The cases by which backends are compared: one line each.
#include "sdk/conformance/op_cases.hpp"

#include <cmath>

namespace gradrack::conform {
namespace {

using Ints = std::vector<int64_t>;

const std::vector<Ints> kShapes = {{}, {1}, {0}, {7}, {3, 5}, {2, 0, 3}, {17, 33}, {5, 40000}};
/// Pairs that broadcast to each other.
const std::vector<std::pair<Ints, Ints>> kPairs = {{{}, {}},
                                                   {{1}, {1}},
                                                   {{0}, {0}},
                                                   {{0}, {1}},
                                                   {{3, 5}, {3, 5}},
                                                   {{3, 5}, {5}},
                                                   {{5}, {3, 5}},
                                                   {{3, 5}, {}},
                                                   {{}, {3, 5}},
                                                   {{3, 1}, {1, 5}},
                                                   {{2, 3, 4}, {3, 1}},
                                                   {{4, 1, 6}, {4, 5, 1}},
                                                   {{768, 128}, {128}},
                                                   {{64, 1000}, {64, 1}},
                                                   {{99, 777}, {99, 777}},
                                                   {{2, 1, 3, 1}, {5, 1, 7}}};

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  for (const char* op : {"Neg", "Abs", "Exp", "Erf", "Tanh", "Sigmoid", "Relu", "Sign", "Floor",
                         "Sin", "Cos", "Atan", "Gelu", "Swish", "LeakyRelu", "Softplus"}) {
    for (const Ints& dims : kShapes) cases.push_back({op, {f(dims)}, {}});
  }
  for (const char* op : {"Sqrt", "Log", "Reciprocal"}) {
    for (const Ints& dims : kShapes) cases.push_back({op, {pos(dims)}, {}});
  }
  cases.push_back({"Gelu", {f({33, 17})}, {{"approximate", std::string("tanh")}}});
  cases.push_back({"Swish", {f({33, 17})}, {{"alpha", 1.7}}});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "LessOrEqual",
                         "Greater", "GreaterOrEqual"}) {
    const bool divides = std::string(op) == "Div";
    for (const auto& [a, b] : kPairs) cases.push_back({op, {f(a), divides ? pos(b) : f(b)}, {}});
    cases.push_back({op, {wide({}), wide({})}, {}});
    cases.push_back({op, {wide({3, 5}), wide({5})}, {}});
  }
  for (const auto& [a, b] : kPairs) cases.push_back({"Pow", {pos(a), f(b)}, {}});
  for (const auto& [a, b] : kPairs) {
    cases.push_back({"Mod", {f(a), pos(b)}, {{"fmod", int64_t{1}}}});
  }
  cases.push_back({"Pow", {num(GR_FLOAT64, 0.9), num(GR_FLOAT64, 17)}, {}});
  for (const char* op : {"Add", "Sub", "Mul", "Equal", "Less"}) {
    cases.push_back({op, {index({3, 5}, 9), index({5}, 9)}, {}});
  }
  for (const char* op : {"And", "Or", "Xor"}) cases.push_back({op, {mask({3, 5}), mask({5})}, {}});
  cases.push_back({"Not", {mask({4, 7})}, {}});
  cases.push_back({"IsNaN", {f({4, 7})}, {}});
  for (const char* op : {"gradrack.GeluGrad", "gradrack.SwishGrad"}) {
    for (const Ints& dims : kShapes) cases.push_back({op, {f(dims), f(dims)}, {}});
  }
  cases.push_back(
      {"gradrack.GeluGrad", {f({33, 17}), f({33, 17})}, {{"approximate", std::string("tanh")}}});
  for (const auto& [a, b] : kPairs) {
    cases.push_back({"Where", {mask(a), f(b), f(a)}, {}});
    cases.push_back({"Where", {mask(b), f({}), f(a)}, {}});
  }
  cases.push_back({"Where", {mask({}), f({3, 5}), f({3, 5})}, {}});
  cases.push_back({"Where", {mask({3, 5}), wide({5}), wide({})}, {}});
  cases.push_back({"Where", {mask({3, 5}), index({5}, 9), index({}, 9)}, {}});
  for (const InputSpec& from : {f({5, 7}), wide({5, 7}), index({5, 7}, 9), mask({5, 7}), f({0})}) {
    for (const int64_t to : {GR_FLOAT32, GR_FLOAT64, GR_INT64, GR_INT32, GR_BOOL}) {
      cases.push_back({"Cast", {from}, {{"to", to}}});
    }
  }
  return cases;
}

std::vector<OpCase> move_cases() {
  std::vector<OpCase> cases;
  const auto axis = [](int64_t k) { return Attrs{{"axis", k}}; };
  for (const Ints& perm :
       std::vector<Ints>{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}}) {
    for (const Ints& dims : std::vector<Ints>{{2, 3, 4}, {1, 5, 1}, {0, 3, 2}, {33, 20, 65}}) {
      cases.push_back({"Transpose", {f(dims)}, {{"perm", perm}}});
    }
  }
  cases.push_back({"Transpose", {f({12, 64, 4, 32})}, {{"perm", Ints{0, 2, 1, 3}}}});
  cases.push_back({"Transpose", {f({12, 4, 64, 32})}, {{"perm", Ints{0, 1, 3, 2}}}});
  cases.push_back({"Transpose", {f({3, 5})}, {}});
  cases.push_back({"Transpose", {index({3, 5}, 9)}, {{"perm", Ints{1, 0}}}});
  cases.push_back({"Transpose", {mask({3, 5})}, {{"perm", Ints{1, 0}}}});
  cases.push_back({"Expand", {f({3, 1})}, {}});
  cases.back().inputs.push_back(ints({2, 3, 4}));
  cases.push_back({"Expand", {f({}), ints({7})}, {}});
  cases.push_back({"Expand", {f({1, 5}), ints({0, 5})}, {}});
  cases.push_back({"Expand", {f({300, 1}), ints({300, 500})}, {}});
  cases.push_back({"gradrack.Copy", {f({3, 5})}, {}});
  cases.push_back({"gradrack.Copy", {f({100, 1000})}, {}});
  cases.push_back({"Concat", {f({2, 3}), f({2, 5})}, axis(1)});
  cases.push_back({"Concat", {f({2, 3}), f({0, 3}), f({4, 3})}, axis(0)});
  cases.push_back({"Concat", {f({3, 4, 5}), f({3, 1, 5}), f({3, 7, 5})}, axis(-2)});
  cases.push_back({"Concat", {index({2}, 9), index({3}, 9)}, axis(0)});
  cases.push_back({"Split", {f({6, 5})}, axis(0), 3});
  cases.push_back({"Split", {f({6, 12})}, axis(-1), 3});
  cases.push_back({"Split", {f({4, 7, 3}), ints({2, 0, 5})}, axis(1), 3});
  cases.push_back({"Slice", {f({7, 6}), ints({1}), ints({5}), ints({0})}, {}});
  cases.push_back({"Slice", {f({7, 6}), ints({1, -4}), ints({100, -1}), ints({1, 0})}, {}});
  cases.push_back({"Slice", {f({7, 6}), ints({0}), ints({7}), ints({0}), ints({3})}, {}});
  cases.push_back({"Slice", {f({7, 6}), ints({-1}), ints({-100}), ints({1}), ints({-2})}, {}});
  cases.push_back({"Slice", {f({7, 6}), ints({5}), ints({2}), ints({0})}, {}});
  cases.push_back({"Slice", {f({64, 3, 128}), ints({1}), ints({2}), ints({1})}, {}});
  cases.push_back(
      {"gradrack.SliceGrad", {f({4, 6}), ints({7, 6}), ints({1}), ints({5}), ints({0})}, {}});
  cases.push_back({"gradrack.SliceGrad",
                   {f({7, 2}), ints({7, 6}), ints({5}), ints({1}), ints({1}), ints({-2})},
                   {}});
  cases.push_back({"Pad", {f({3, 4}), ints({1, 0, 2, 3})}, {}});
  cases.push_back({"Pad", {f({3, 4}), ints({1, 2}), num(GR_FLOAT32, -1.5), ints({1})}, {}});
  cases.push_back({"Pad", {f({0, 4}), ints({1, 0, 2, 0})}, {}});
  cases.push_back({"Gather", {f({9, 5}), index({4}, 9)}, axis(0)});
  cases.push_back({"Gather", {f({3, 9, 2}), index({2, 4}, 9)}, axis(1)});
  cases.push_back({"Gather", {f({65, 128}), index({12, 64}, 65)}, axis(0)});
  cases.push_back({"Gather", {index({9}, 5), index({3}, 9)}, axis(0)});
  cases.push_back({"Gather", {f({9, 5}), index({0}, 9)}, axis(0)});
  cases.push_back({"gradrack.GatherGrad", {f({4, 5}), index({4}, 9), ints({9, 5})}, axis(0)});
  cases.push_back(
      {"gradrack.GatherGrad", {f({3, 2, 4, 2}), index({2, 4}, 9), ints({3, 9, 2})}, axis(1)});
  cases.push_back(
      {"gradrack.GatherGrad", {f({12, 64, 128}), index({12, 64}, 65), ints({65, 128})}, axis(0)});
  cases.push_back({"GatherElements", {f({4, 6}), index({4, 3}, 6)}, axis(1)});
  cases.push_back({"GatherElements", {f({4, 6}), index({2, 6}, 4)}, axis(0)});
  cases.push_back({"GatherElements", {f({300, 65}), index({300, 40}, 65)}, axis(1)});
  cases.push_back({"ScatterElements",
                   {f({4, 6}), index({4, 3}, 6), f({4, 3})},
                   {{"axis", int64_t{1}}, {"reduction", std::string("add")}}});
  cases.push_back({"ScatterElements", {f({6, 1}), index({1, 1}, 6), f({1, 1})}, axis(0)});
  return cases;
}

std::vector<OpCase> product_cases() {
  std::vector<OpCase> cases;
  const auto attrs = [](int64_t a, int64_t b, double alpha) {
    return Attrs{{"transA", a}, {"transB", b}, {"alpha", alpha}};
  };
  const auto swap = [](Ints dims, int64_t yes) {
    if (yes != 0) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
    return dims;
  };
  struct Row {
    Ints a, b;
  };
  const std::vector<Row> rows = {{{3, 4}, {4, 5}},
                                 {{1, 1}, {1, 1}},
                                 {{0, 4}, {4, 5}},
                                 {{3, 0}, {0, 5}},
                                 {{3, 4}, {4, 0}},
                                 {{2, 3, 4}, {2, 4, 5}},
                                 {{2, 3, 4}, {4, 5}},
                                 {{4, 5}, {3, 5, 2}},
                                 {{2, 1, 3, 4}, {5, 4, 2}},
                                 {{0, 3, 4}, {0, 4, 5}},
                                 {{12, 4, 64, 32}, {12, 4, 32, 64}},
                                 {{257, 129}, {129, 65}},
                                 {{64, 700}, {700, 300}}};
  for (const Row& row : rows) {
    for (const int64_t a : {0, 1}) {
      for (const int64_t b : {0, 1}) {
        cases.push_back({"gradrack.FusedMatMul",
                         {f(swap(row.a, a)), f(swap(row.b, b))},
                         attrs(a, b, a == b ? 1.0 : 0.25)});
      }
    }
  }
  return cases;
}

std::vector<OpCase> row_cases() {
  std::vector<OpCase> cases;
  const std::vector<Ints> shapes = {{3, 5}, {1, 1}, {4, 0}, {0, 4}, {2, 3, 65}, {301, 128}};
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Ints& dims : shapes) cases.push_back({op, {f(dims)}, {{"axis", int64_t{-1}}}});
  }
  for (const char* op : {"gradrack.SoftmaxGrad", "gradrack.LogSoftmaxGrad"}) {
    for (const Ints& dims : shapes) cases.push_back({op, {f(dims), f(dims)}, {}});
  }
  for (const Ints& dims : shapes) {
    const Ints last = {dims.back()};
    for (const std::string norm : {"LayerNormalization", "RMSNormalization"}) {
      cases.push_back({norm, {f(dims), f(last)}, {}, 1});
      cases.push_back({"gradrack." + norm + "Grad", {f(dims), f(dims), f(last)}, {}});
      cases.push_back({"gradrack." + norm + "ScaleGrad", {f(dims), f(dims)}, {}});
    }
    cases.push_back({"LayerNormalization", {f(dims), f(last), f(last)}, {}, 1});
  }
  cases.push_back({"LayerNormalization", {f({4, 3, 5}), f({3, 5})}, {{"axis", int64_t{1}}}, 1});
  const std::vector<std::pair<Ints, Ints>> reductions = {{{}, {}},
                                                         {{5}, {0}},
                                                         {{3, 5}, {1}},
                                                         {{3, 5}, {0}},
                                                         {{3, 5}, {0, 1}},
                                                         {{2, 3, 4, 5}, {0, 2}},
                                                         {{2, 3, 4, 5}, {1, 3}},
                                                         {{2, 3, 4, 5}, {1, 2}},
                                                         {{0, 5}, {0}},
                                                         {{5, 0}, {1}},
                                                         {{5, 0}, {0}},
                                                         {{1, 7, 1}, {0, 2}},
                                                         {{768, 384}, {0}},
                                                         {{768, 384}, {1}},
                                                         {{40000}, {0}},
                                                         {{12, 8, 14, 14}, {0, 2, 3}}};
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    for (const auto& [dims, axes] : reductions) {
      for (const int64_t keep : {0, 1}) {
        const Attrs attrs{{"keepdims", keep}};
        if (axes.empty()) {
          cases.push_back({op, {f(dims)}, attrs});
        } else {
          cases.push_back({op, {f(dims), ints(axes)}, attrs});
        }
      }
    }
    cases.push_back({op, {wide({3, 5}), ints({0})}, {}});
    cases.push_back({op, {wide({3, 5})}, {}});
  }
  cases.push_back({"ReduceSum", {index({3, 5}, 9), ints({1})}, {}});
  return cases;
}

std::vector<OpCase> image_cases() {
  std::vector<OpCase> cases;
  struct Row {
    Ints x, w, y;
    Attrs attrs;
  };
  const std::vector<Row> rows = {
      {{2, 3, 7, 6}, {4, 3, 3, 3}, {2, 4, 5, 4}, {}},
      {{2, 3, 7, 6}, {4, 3, 3, 3}, {2, 4, 7, 6}, {{"pads", Ints{1, 1, 1, 1}}}},
      {{2, 3, 7, 6}, {4, 3, 1, 1}, {2, 4, 7, 6}, {}},
      {{1, 4, 9, 9},
       {6, 2, 3, 2},
       {1, 6, 4, 5},
       {{"group", int64_t{2}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 1, 0, 0}}}},
      {{2, 2, 9, 9}, {3, 2, 3, 3}, {2, 3, 5, 5}, {{"dilations", Ints{2, 2}}}},
      {{2, 3, 11}, {4, 3, 4}, {2, 4, 4}, {{"strides", Ints{3}}, {"pads", Ints{2, 1}}}},
      {{1, 2, 4, 5, 6}, {3, 2, 2, 2, 2}, {1, 3, 3, 4, 5}, {}},
      {{0, 3, 7, 6}, {4, 3, 3, 3}, {0, 4, 5, 4}, {}},
      {{2, 3, 7, 6}, {4, 3, 2, 2}, {2, 4, 7, 6}, {{"auto_pad", std::string("SAME_UPPER")}}},
      {{40, 8, 14, 14}, {16, 8, 3, 3}, {40, 16, 14, 14}, {{"pads", Ints{1, 1, 1, 1}}}}};
  for (const Row& row : rows) {
    cases.push_back({"Conv", {f(row.x), f(row.w)}, row.attrs});
    cases.push_back({"Conv", {f(row.x), f(row.w), f({row.w[0]})}, row.attrs});
    cases.push_back({"gradrack.ConvInputGrad", {f(row.y), f(row.w), ints(row.x)}, row.attrs});
    cases.push_back({"gradrack.ConvWeightGrad", {f(row.y), f(row.x), ints(row.w)}, row.attrs});
  }
  struct Pool {
    Ints x, y;
    Attrs attrs;
  };
  const std::vector<Pool> pools = {
      {{2, 3, 6, 8}, {2, 3, 3, 4}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}},
      {{2, 3, 7, 5}, {2, 3, 7, 5}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{1, 2, 7, 7},
       {1, 2, 4, 4},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}}},
      {{2, 2, 9}, {2, 2, 3}, {{"kernel_shape", Ints{3}}, {"strides", Ints{3}}}},
      {{0, 3, 6, 8}, {0, 3, 5, 7}, {{"kernel_shape", Ints{2, 2}}}},
      {{12, 16, 28, 28},
       {12, 16, 14, 14},
       {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}}};
  for (const Pool& pool : pools) {
    cases.push_back({"MaxPool", {f(pool.x)}, pool.attrs, 1});
    cases.push_back({"gradrack.MaxPoolGrad", {f(pool.y), f(pool.x)}, pool.attrs});
    for (const int64_t with_pads : {0, 1}) {
      Attrs attrs = pool.attrs;
      attrs.set("count_include_pad", with_pads);
      cases.push_back({"AveragePool", {f(pool.x)}, attrs});
      cases.push_back({"gradrack.AveragePoolGrad", {f(pool.y), ints(pool.x)}, attrs});
    }
  }
  for (const Ints& x : std::vector<Ints>{{4, 3, 5, 5}, {7, 1}, {2, 5, 9}, {40, 16, 14, 14}}) {
    const Ints c = {x[1]};
    cases.push_back({"BatchNormalization",
                     {f(x), f(c), f(c), f(c), pos(c)},
                     {{"training_mode", int64_t{1}}},
                     3});
    cases.push_back({"BatchNormalization",
                     {f(x), f(c), f(c), f(c), pos(c)},
                     {{"training_mode", int64_t{1}}},
                     1});
    cases.push_back({"gradrack.BatchNormalizationGrad", {f(x), f(x), f(c)}, {}});
    cases.push_back({"gradrack.BatchNormalizationScaleGrad", {f(x), f(x)}, {}});
  }
  return cases;
}

std::vector<OpCase> step_cases() {
  std::vector<OpCase> cases;
  const std::string sum = "sum", mean = "mean", each = "none";
  for (const Ints& dims : std::vector<Ints>{{5, 7}, {1, 1}, {0, 3}, {768, 66}}) {
    const Ints n = {dims[0]};
    const InputSpec labels = index(n, dims[1]);
    for (const std::string& how : {sum, mean, each}) {
      for (const double smoothing : {0.0, 0.1}) {
        Attrs attrs{{"reduction", how}, {"label_smoothing", smoothing}};
        const InputSpec g = how == each ? f(n) : f({});
        cases.push_back({"SoftmaxCrossEntropyLoss", {f(dims), labels}, attrs, 1});
        cases.push_back({"gradrack.SoftmaxCrossEntropyLossGrad", {g, f(dims), labels}, attrs});
        attrs.set("ignore_index", int64_t{0});
        cases.push_back({"SoftmaxCrossEntropyLoss", {f(dims), labels}, attrs, 1});
        cases.push_back({"gradrack.SoftmaxCrossEntropyLossGrad", {g, f(dims), labels}, attrs});
      }
    }
    cases.push_back({"gradrack.CountTargets", {labels}, {{"ignore_index", int64_t{0}}}});
    cases.push_back({"gradrack.CountTargets", {labels}, {}});
  }
  const InputSpec lr = num(GR_FLOAT64, 1e-3), step = num(GR_FLOAT64, 3);
  const Attrs adam{{"weight_decay", 0.1}};
  for (const Ints& d : std::vector<Ints>{{3, 5}, {1}, {0}, {128, 513}}) {
    cases.push_back({"gradrack.AdamW", {f(d), f(d), f(d), pos(d), lr, step}, adam});
    for (const double ok : {0.0, 1.0}) {
      cases.push_back(
          {"gradrack.AdamW", {f(d), f(d), f(d), pos(d), lr, step, num(GR_BOOL, ok)}, adam});
    }
    cases.push_back({"gradrack.SumSquares", {f(d)}, {}});
    cases.push_back({"gradrack.IsFinite", {f(d)}, {}});
  }
  InputSpec rng = index({3}, 100);
  for (const Ints& d : std::vector<Ints>{{3, 5}, {1}, {0}, {100, 513}}) {
    const Attrs attrs{{"ratio", 0.3}, {"stream", int64_t{12345}}};
    cases.push_back({"gradrack.Dropout", {f(d), rng}, attrs, 2});
    cases.push_back({"gradrack.Dropout", {f(d), rng}, attrs, 1});
    const Attrs stream{{"stream", int64_t{12345}}};
    cases.push_back({"gradrack.StochasticRound", {f(d), rng}, stream});
    InputSpec old = f(d);
    old.dtype = GR_BFLOAT16;
    for (const double ok : {0.0, 1.0}) {
      cases.push_back({"gradrack.StochasticRound", {f(d), rng, old, num(GR_BOOL, ok)}, stream});
    }
  }
  for (const int64_t interleaved : {0, 1}) {
    const Attrs attrs{{"interleaved", interleaved}};
    cases.push_back({"RotaryEmbedding", {f({2, 3, 5, 8}), f({1, 5, 4}), f({1, 5, 4})}, attrs});
    cases.push_back({"RotaryEmbedding", {f({2, 3, 5, 8}), f({2, 5, 4}), f({2, 5, 4})}, attrs});
    Attrs packed = attrs;
    packed.set("num_heads", int64_t{3});
    packed.set("rotary_embedding_dim", int64_t{4});
    cases.push_back({"RotaryEmbedding", {f({2, 5, 24}), f({1, 5, 2}), f({1, 5, 2})}, packed});
    cases.push_back(
        {"RotaryEmbedding", {f({2, 5, 24}), f({9, 2}), f({9, 2}), index({2, 5}, 9)}, packed});
  }
  for (const Ints& d : std::vector<Ints>{{4, 4}, {2, 3, 5}, {2, 5, 3}, {0, 3, 3}, {48, 64, 64}}) {
    cases.push_back({"gradrack.CausalMask", {f(d)}, {}});
    cases.push_back({"Trilu", {f(d)}, {{"upper", int64_t{0}}}});
    cases.push_back({"Trilu", {f(d)}, {{"upper", int64_t{1}}}});
  }
  return cases;
}

}  // namespace gradrack::conform
