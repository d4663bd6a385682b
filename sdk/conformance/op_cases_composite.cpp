// SPDX-License-Identifier: Apache-2.0
// Cases of operators that backends mostly run as their decomposition, and of the few primitives
// that no model needs fast: see op_cases.hpp.
#include "sdk/conformance/op_cases.hpp"

namespace gradrack::conform {
namespace {

using Ints = std::vector<int64_t>;

void add_products(std::vector<OpCase>* cases) {
  const std::vector<std::pair<Ints, Ints>> pairs = {
      {{3, 4}, {4, 5}}, {{2, 3, 4}, {4, 5}}, {{2, 3, 4}, {2, 4, 5}}, {{4}, {4, 5}},
      {{3, 4}, {4}},    {{4}, {4}},          {{0, 4}, {4, 5}},       {{2, 1, 3, 4}, {5, 4, 2}}};
  for (const auto& [a, b] : pairs) cases->push_back({"MatMul", {f(a), f(b)}, {}});
  const Attrs swapped{{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5}};
  cases->push_back({"Gemm", {f({3, 4}), f({4, 5}), f({5})}, {}});
  cases->push_back({"Gemm", {f({3, 4}), f({4, 5})}, {}});
  cases->push_back({"Gemm", {f({4, 3}), f({5, 4}), f({3, 1})}, swapped});
  cases->push_back({"Gemm", {f({0, 4}), f({4, 5}), f({5})}, {}});
}

void add_attention(std::vector<OpCase>* cases) {
  const Attrs causal{{"is_causal", int64_t{1}}};
  cases->push_back({"Attention", {f({2, 2, 3, 4}), f({2, 2, 5, 4}), f({2, 2, 5, 3})}, {}, 1});
  cases->push_back({"Attention", {f({1, 4, 3, 2}), f({1, 2, 3, 2}), f({1, 2, 3, 2})}, causal, 1});
  cases->push_back({"Attention",
                    {f({2, 3, 8}), f({2, 4, 4}), f({2, 4, 6})},
                    {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"softcap", 1.5}},
                    1});
  cases->push_back(
      {"Attention", {f({2, 2, 3, 2}), f({2, 2, 4, 2}), f({2, 2, 4, 2}), f({2, 1, 3, 4})}, {}, 1});
  cases->push_back(
      {"Attention", {f({2, 4, 16, 8}), f({2, 4, 16, 8}), f({2, 4, 16, 8})}, causal, 1});
  cases->push_back(
      {"Attention", {f({1, 2, 70, 4}), f({1, 1, 90, 4}), f({1, 1, 90, 3})}, causal, 1});
}

void add_attention_grad(std::vector<OpCase>* cases) {
  const Attrs causal{{"is_causal", int64_t{1}}};
  const auto add = [&](const Ints& gy, const Ints& q, const Ints& k, const Ints& v, Attrs attrs) {
    cases->push_back({"gradrack.AttentionGrad", {f(gy), f(q), f(k), f(v)}, std::move(attrs), 3});
  };
  add({2, 2, 3, 3}, {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {});
  add({1, 4, 3, 2}, {1, 4, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, causal);
  add({1, 2, 70, 3}, {1, 2, 70, 4}, {1, 1, 90, 4}, {1, 1, 90, 3}, causal);
  add({1, 2, 130, 4}, {1, 2, 130, 4}, {1, 2, 100, 4}, {1, 2, 100, 4}, causal);
  Attrs packed{{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"scale", 0.3}};
  add({2, 3, 12}, {2, 3, 8}, {2, 4, 4}, {2, 4, 6}, packed);
  packed.set("softcap", 1.5);
  add({2, 3, 12}, {2, 3, 8}, {2, 4, 4}, {2, 4, 6}, packed);
  cases->push_back(
      {"gradrack.AttentionGrad",
       {f({2, 2, 3, 2}), f({2, 2, 3, 2}), f({2, 2, 4, 2}), f({2, 2, 4, 2}), f({2, 1, 3, 4})},
       {},
       3});
}

void add_rest(std::vector<OpCase>* cases) {
  for (const char* op : {"Sum", "Max", "Min"}) {
    cases->push_back({op, {f({2, 3}), f({3}), f({2, 1})}, {}});
    cases->push_back({op, {f({4})}, {}});
  }
  cases->push_back({"Clip", {f({11}), known(GR_FLOAT32, -0.9), known(GR_FLOAT32, 1.1)}, {}});
  cases->push_back({"Clip", {f({2, 5}), known(GR_FLOAT32, -0.9)}, {}});
  cases->push_back({"Clip", {f({0, 5}), none(), known(GR_FLOAT32, 0.9)}, {}});
  for (const Ints& dims : std::vector<Ints>{{2, 4, 3, 2}, {3, 4}, {2, 4, 3}}) {
    cases->push_back(
        {"GroupNormalization", {f(dims), f({4}), f({4})}, {{"num_groups", int64_t{2}}}});
  }
  cases->push_back({"GlobalAveragePool", {f({2, 3, 4, 2})}, {}});
  cases->push_back({"GlobalAveragePool", {f({2, 3, 5})}, {}});
  for (const int64_t largest : {0, 1}) {
    for (const int64_t axis : {0, 1}) {
      cases->push_back({"TopK", {f({6, 5}), ints({3})}, {{"axis", axis}, {"largest", largest}}});
    }
  }
  cases->push_back({"TopK", {index({4, 9}, 3), ints({9})}, {}});  // ties
  cases->push_back({"TopK", {f({300, 200}), ints({7})}, {}});
  for (const char* how : {"mul", "max", "min"}) {
    cases->push_back({"ScatterElements",
                      {f({3, 5}), index({3, 4}, 5), f({3, 4})},
                      {{"axis", int64_t{1}}, {"reduction", std::string(how)}}});
  }
  cases->push_back({"ReduceMin", {index({3, 5}, 9), ints({1})}, {}});
  cases->push_back({"ReduceMin", {mask({3, 5}), ints({0})}, {}});
  cases->push_back({"ReduceMax", {mask({3, 5}), ints({0})}, {}});
  cases->push_back({"Dropout", {f({3, 4}), known(GR_FLOAT32, 0.25)}, {}, 1});
  for (const int64_t axis : {0, 1, -1}) {
    for (const int64_t keep : {0, 1}) {
      cases->push_back({"ArgMax", {f({3, 5, 2})}, {{"axis", axis}, {"keepdims", keep}}});
    }
  }
}

/// Of the operators that models made elsewhere bring, those whose decompositions are longest.
void add_imported(std::vector<OpCase>* cases) {
  cases->push_back({"HardSwish", {f({3, 7})}, {}});
  cases->push_back({"CumSum", {f({3, 7}), ints({1})}, {{"exclusive", int64_t{1}}}});
  cases->push_back({"GatherND", {f({3, 4, 2}), index({5, 2}, 3)}, {}});
  cases->push_back({"InstanceNormalization", {f({2, 3, 4, 2}), f({3}), f({3})}, {}});
  cases->push_back(
      {"Resize",
       {f({1, 2, 3, 4})},
       {{"mode", std::string("linear")}, {"scales", std::vector<double>{1, 1, 2, 0.5}}}});
  cases->push_back(
      {"ConvTranspose",
       {f({2, 4, 3, 3}), f({4, 3, 3, 3}), f({3})},
       {{"output_padding", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}});
  cases->push_back(
      {"Einsum", {f({2, 3, 4}), f({2, 5, 4})}, {{"equation", std::string("bid,bjd->bij")}}});
  cases->push_back({"LSTM", {f({3, 2, 4}), f({1, 20, 4}), f({1, 20, 5}), f({1, 40})}, {}, 3});
}

}  // namespace

std::vector<OpCase> composite_cases() {
  std::vector<OpCase> cases;
  add_products(&cases);
  add_attention(&cases);
  add_attention_grad(&cases);
  add_rest(&cases);
  add_imported(&cases);
  return cases;
}

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> all;
  for (auto* table : {elementwise_cases, move_cases, product_cases, row_cases, image_cases,
                      step_cases, composite_cases}) {
    std::vector<OpCase> rows = table();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace gradrack::conform
