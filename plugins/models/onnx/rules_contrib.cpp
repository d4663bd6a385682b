// SPDX-License-Identifier: Apache-2.0
// Rules of operators outside ONNX's own set: those that ONNX Runtime's optimiser puts into files
// (`com.microsoft`), and the scaler of tables (`ai.onnx.ml`). See rules.hpp.
#include <cmath>

#include "rules.hpp"

namespace gradrack::onnx {

namespace {

void gelu(NodeImport& n) {
  Value x = n.in(0);
  if (n.has(1)) x = n.g().add(x, n.in(1));
  const bool fast = n.node().op != "Gelu" && n.node().op != "BiasGelu";
  n.out(0, n.g().node("Gelu", {x}, {{"approximate", fast ? "tanh" : "none"}}));
}

/// X + skip (+ bias), normalised; outputs 1 and 2 (mean, deviation) belong to training.
void skip_layer_norm(NodeImport& n) {
  n.require(!n.wants(1) && !n.wants(2), "outputs of training are not given");
  Value sum = n.g().add(n.in(0), n.in(1));
  const bool simple = n.node().op == "SkipSimplifiedLayerNormalization";
  const size_t bias = simple ? 3 : 4;
  if (n.has(bias)) sum = n.g().add(sum, n.in(bias));
  const double epsilon = n.attr("epsilon", 1e-12);
  const std::vector<sdk::Attr> attrs = {{"epsilon", epsilon}, {"axis", -1}};
  if (simple) {
    n.out(0, n.g().node("RMSNormalization", {sum, n.in(2)}, attrs));
  } else {
    n.out(0, n.g().node("LayerNormalization", {sum, n.in(2), n.in(3)}, attrs));
  }
  n.out(3, sum);
}

void simplified_layer_norm(NodeImport& n) {
  n.emit("RMSNormalization", {n.in(0), n.in(1)}, n.attrs({"stash_type"}));
}

/// alpha op(A) op(B), leading dims broadcast.
void fused_matmul(NodeImport& n) {
  n.require(n.attr("transBatchA", int64_t{0}) == 0 && n.attr("transBatchB", int64_t{0}) == 0,
            "moves its batch dims, which is not read");
  n.out(0, n.g().node("gradrack.FusedMatMul", {n.in(0), n.in(1)},
                      {{"transA", n.attr("transA", int64_t{0})},
                       {"transB", n.attr("transB", int64_t{0})},
                       {"alpha", n.attr("alpha", 1.0)}}));
}

/// The Attention of `com.microsoft`: one product for Q, K and V, then attention by heads, with a
/// mask over keys of 0 and 1, or none.
void attention(NodeImport& n) {
  n.require(!n.has(4) && !n.has(5) && !n.wants(1),
            "has a past, a bias of its own or a present output, which is not read");
  n.require(n.attr("do_rotary", int64_t{0}) == 0, "rotates, which is not read");
  const int64_t heads = n.attr("num_heads", int64_t{0});
  const gr_type_t weight = n.type(n.in(1));
  n.require(heads > 0 && weight.rank == 2 && weight.dims[1].symbol == nullptr &&
                weight.dims[1].size % 3 == 0 && weight.dims[1].size / 3 % heads == 0 &&
                !n.has_attr("qkv_hidden_sizes"),
            "wanted Q, K and V of equal widths that divide by its heads");
  Value all = n.g().matmul(n.in(0), n.in(1));
  if (n.has(2)) all = n.g().add(all, n.in(2));
  const int64_t width = weight.dims[1].size / 3;
  const auto parts =
      n.g().nodes("Split", {all, n.g().ints({width, width, width})}, {{"axis", -1}}, 3);
  std::vector<Value> inputs(parts.begin(), parts.end());
  if (n.has(3)) {
    const gr_type_t mask = n.type(n.in(3));
    n.require(mask.rank == 2, "has a mask of rank ", mask.rank, ", only [batch, keys] is read");
    const Value keep = n.g().cast(n.in(3), GR_BOOL);
    inputs.push_back(n.g().node("Unsqueeze", {keep, n.g().ints({1, 2})}));
  }
  std::vector<sdk::Attr> attrs = {{"q_num_heads", heads},
                                  {"kv_num_heads", heads},
                                  {"is_causal", n.attr("unidirectional", int64_t{0})}};
  if (n.has_attr("scale")) attrs.emplace_back("scale", n.attr("scale", 0.0));
  n.out(0, n.g().node("Attention", inputs, attrs));
}

/// (X - offset) * scale by column: what scikit-learn's converter makes of its scalers.
void scaler(NodeImport& n) {
  const auto column = [&](const char* name) {
    const AttributeMessage* const given = n.node().find(name);
    n.require(given != nullptr && !given->floats.empty(), "has no ", name);
    const std::vector<double> reals(given->floats.begin(), given->floats.end());
    return n.g().reals(reals, {int64_t(reals.size())});
  };
  const Value x = n.g().cast(n.in(0), GR_FLOAT32);
  n.out(0, n.g().mul(n.g().sub(x, column("offset")), column("scale")));
}

constexpr RuleEntry kRules[] = {
    {"com.microsoft.Gelu", gelu},
    {"com.microsoft.FastGelu", gelu},
    {"com.microsoft.BiasGelu", gelu},
    {"com.microsoft.SkipLayerNormalization", skip_layer_norm},
    {"com.microsoft.SkipSimplifiedLayerNormalization", skip_layer_norm},
    {"SimplifiedLayerNormalization", simplified_layer_norm},
    {"com.microsoft.FusedMatMul", fused_matmul},
    {"com.microsoft.Attention", attention},
    {"ai.onnx.ml.Scaler", scaler},
};

}  // namespace

std::span<const RuleEntry> contrib_rules() { return kRules; }

}  // namespace gradrack::onnx
