// SPDX-License-Identifier: Apache-2.0
// Rows for softmax, norms, convolution, pools, attention, losses, dropout, updates.
//
// Gradient operators have rows of their own: their gradients come from their decompositions, so
// these are second derivatives.
#include <cmath>
#include <limits>

#include "tests/grad/cases.hpp"

namespace gradrack::test {

namespace {

using Ints = std::vector<int64_t>;

Attrs axis(int64_t k) { return {{"axis", k}}; }

void add_softmax(std::vector<GradCase>* rows) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    rows->push_back(onnx_case(op, "last", {wrt({3, 5})}));
    rows->push_back(onnx_case(op, "middle", {wrt({2, 4, 3})}, axis(1)));
    rows->push_back(onnx_case(op, "one_element", {wrt({1})}));
    rows->push_back(onnx_case(op, "no_rows", {wrt({0, 3})}));
    rows->push_back(onnx_case(op, "far_apart", {wrt({2, 5}, -300, 300)}));
    const std::string grad = std::string(op) + "Grad";
    rows->push_back(own_case(grad, "last", {wrt({3, 5}), wrt({3, 5}, -1, 1)}));
    rows->push_back(own_case(grad, "first", {wrt({3, 2}), wrt({3, 2}, -1, 1)}, axis(0)));
  }
}

void add_norm(std::vector<GradCase>* rows) {
  for (const std::string op : {"LayerNormalization", "RMSNormalization"}) {
    rows->push_back(onnx_case(op, "rows", {wrt({3, 5}), wrt({5})}));
    rows->push_back(onnx_case(op, "two_axes", {wrt({2, 3, 4}), wrt({3, 4})}, axis(1)));
    rows->push_back(onnx_case(op, "all_axes", {wrt({2, 3}), wrt({2, 3})}, axis(0)));
    rows->push_back(onnx_case(op, "no_rows", {wrt({0, 3}), wrt({3})}));
    rows->push_back(onnx_case(op, "one_element", {wrt({1, 1}), wrt({1})}));
    rows->push_back(own_case(op + "Grad", "rows", {wrt({3, 4}), wrt({3, 4}), wrt({4})}));
    rows->push_back(own_case(op + "ScaleGrad", "rows", {wrt({3, 4}), wrt({3, 4})}));
    rows->push_back(own_case(op + "ScaleGrad", "all_axes", {wrt({3, 4}), wrt({3, 4})}, axis(0)));
  }
  rows->push_back(onnx_case("LayerNormalization", "bias", {wrt({2, 3, 5}), wrt({5}), wrt({5})}));
  GradCase statistics =
      onnx_case("LayerNormalization", "statistics", {fixed({2, 3, 5}), fixed({5}), fixed({5})});
  statistics.outputs = 3;
  rows->push_back(statistics);
  const Attrs groups{{"num_groups", int64_t{2}}};
  rows->push_back(
      onnx_case("GroupNormalization", "planes", {wrt({2, 4, 3, 2}), wrt({4}), wrt({4})}, groups));
  rows->push_back(onnx_case("GroupNormalization", "no_space", {wrt({3, 6}), wrt({6}), wrt({6})},
                            {{"num_groups", int64_t{3}}, {"epsilon", 1e-2}}));
}

void add_batch_norm(std::vector<GradCase>* rows) {
  const Attrs training{{"training_mode", int64_t{1}}, {"epsilon", 1e-2}};
  const auto inputs = [](std::vector<int64_t> dims) -> std::vector<CaseInput> {
    const int64_t c = dims[1];
    return {wrt(std::move(dims)), wrt({c}), wrt({c}), fixed({c}), fixed({c}, 0.5, 2)};
  };
  rows->push_back(onnx_case("BatchNormalization", "training", inputs({3, 2, 2, 3}), training));
  rows->push_back(onnx_case("BatchNormalization", "training_flat", inputs({5, 3}), training));
  rows->push_back(onnx_case("BatchNormalization", "inference", inputs({3, 2, 4})));
  std::vector<CaseInput> plain = inputs({4, 2, 3});
  for (CaseInput& input : plain) input.differentiable = false;
  GradCase running = onnx_case("BatchNormalization", "running", plain,
                               {{"training_mode", int64_t{1}}, {"momentum", 0.7}});
  running.outputs = 3;
  rows->push_back(running);
  const Attrs epsilon{{"epsilon", 1e-2}};
  rows->push_back(own_case("BatchNormalizationGrad", "planes",
                           {wrt({3, 2, 2}), wrt({3, 2, 2}), wrt({2})}, epsilon));
  rows->push_back(
      own_case("BatchNormalizationScaleGrad", "planes", {wrt({3, 2, 2}), wrt({3, 2, 2})}, epsilon));
}

void add_conv(std::vector<GradCase>* rows) {
  const auto add = [&](const char* note, Ints x, Ints w, Attrs attrs) {
    rows->push_back(onnx_case("Conv", note, {wrt(std::move(x)), wrt(w), wrt({w[0]})}, attrs));
  };
  add("plain", {2, 2, 5, 4}, {3, 2, 3, 2}, {});
  add("strides_pads", {1, 2, 6, 5}, {2, 2, 3, 3},
      {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 2, 1}}});
  add("dilated_groups", {1, 4, 7, 6}, {4, 2, 2, 2},
      {{"dilations", Ints{3, 2}}, {"group", int64_t{2}}});
  add("line", {2, 3, 9}, {2, 3, 3}, {{"strides", Ints{2}}});
  add("volume", {1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {{"pads", Ints{0, 1, 0, 1, 0, 1}}});
  add("one_element", {1, 1, 1, 1}, {1, 1, 1, 1}, {});
  add("no_batch", {0, 2, 4, 4}, {3, 2, 3, 3}, {});
  add("same_upper", {1, 1, 5, 6}, {2, 1, 3, 2},
      {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}});
  add("same_lower", {1, 1, 5, 6}, {2, 1, 2, 2}, {{"auto_pad", std::string("SAME_LOWER")}});
  add("valid", {1, 1, 5, 6}, {2, 1, 2, 3}, {{"auto_pad", std::string("VALID")}});
  const Attrs grid{{"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}};
  rows->push_back(own_case("ConvInputGrad", "grid",
                           {wrt({2, 3, 3, 4}), wrt({3, 2, 3, 3}), known({2, 2, 5, 4})}, grid));
  rows->push_back(own_case("ConvWeightGrad", "grid",
                           {wrt({2, 3, 3, 4}), wrt({2, 2, 5, 4}), known({3, 2, 3, 3})}, grid));
}

void add_pool(std::vector<GradCase>* rows) {
  const auto add = [&](const char* note, Ints x, Ints kernel, Attrs attrs) {
    attrs.set("kernel_shape", std::move(kernel));
    for (const char* op : {"MaxPool", "AveragePool"}) {
      rows->push_back(onnx_case(op, note, {wrt(x)}, attrs));
    }
  };
  add("plain", {2, 2, 4, 6}, {2, 3}, {{"strides", Ints{2, 3}}});
  add("overlap_pads", {1, 2, 5, 5}, {3, 3}, {{"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 2}}});
  add("dilated", {1, 1, 7, 6}, {2, 2}, {{"dilations", Ints{3, 2}}});
  add("ceil", {1, 2, 5, 7}, {2, 2}, {{"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}});
  add("same_upper", {1, 1, 5, 4}, {2, 3},
      {{"strides", Ints{2, 1}}, {"auto_pad", std::string("SAME_UPPER")}});
  add("line", {2, 1, 7}, {3}, {});
  add("volume", {1, 1, 3, 3, 4}, {2, 2, 2}, {});
  add("one_element", {1, 1, 1, 1}, {1, 1}, {});
  add("no_channels", {2, 0, 3, 3}, {2, 2}, {});
  const Attrs padded{
      {"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 1, 1, 0}}, {"count_include_pad", int64_t{1}}};
  rows->push_back(onnx_case("AveragePool", "count_pad", {wrt({1, 2, 4, 5})}, padded));
  rows->push_back(
      own_case("AveragePoolGrad", "count_pad", {wrt({1, 2, 4, 5}), known({1, 2, 4, 5})}, padded));
  rows->push_back(onnx_case("GlobalAveragePool", "planes", {wrt({2, 3, 4, 2})}));
  rows->push_back(onnx_case("GlobalAveragePool", "line", {wrt({2, 3, 5})}));
}

void add_rotary(std::vector<GradCase>* rows) {
  const auto add = [&](const char* note, Ints x, Ints cache, CaseInput ids, Attrs attrs) {
    rows->push_back(
        onnx_case("RotaryEmbedding", note,
                  {wrt(std::move(x)), fixed(cache, -1, 1), fixed(cache, -1.5, 0.5), ids}, attrs));
  };
  add("by_position", {2, 2, 3, 4}, {5, 2}, indices({2, 3}, {0, 1, 2, 4, 3, 0}), {});
  add("own_angles", {2, 2, 3, 4}, {2, 3, 2}, missing(), {});
  add("shared_angles", {2, 2, 3, 4}, {1, 3, 2}, missing(), {});
  add("interleaved", {1, 2, 3, 6}, {4, 3}, indices({1, 3}, {3, 1, 2}),
      {{"interleaved", int64_t{1}}});
  add("partial", {1, 2, 3, 6}, {4, 2}, indices({1, 3}, {3, 1, 2}),
      {{"rotary_embedding_dim", int64_t{4}}});
  add("packed_partial", {2, 3, 12}, {2, 3, 2}, missing(),
      {{"num_heads", int64_t{2}},
       {"rotary_embedding_dim", int64_t{4}},
       {"interleaved", int64_t{1}}});
}

void add_attention(std::vector<GradCase>* rows) {
  const Attrs causal{{"is_causal", int64_t{1}}};
  const auto add = [&](const char* note, Ints q, Ints k, Ints v, CaseInput mask, Attrs attrs) {
    rows->push_back(onnx_case("Attention", note,
                              {wrt(std::move(q)), wrt(std::move(k)), wrt(std::move(v)), mask},
                              std::move(attrs)));
  };
  add("plain", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, missing(), {});
  add("causal_groups", {1, 4, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, missing(), causal);
  add("groups", {2, 4, 2, 2}, {2, 1, 3, 2}, {2, 1, 3, 3}, missing(), {});
  add("one_element", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, missing(), causal);
  Attrs packed{{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}, {"softcap", 1.5}};
  add("packed_softcap", {2, 3, 8}, {2, 4, 4}, {2, 4, 6}, missing(), packed);
  packed.set("is_causal", int64_t{1});
  packed.set("scale", 0.3);
  add("packed_mask_per_head", {1, 3, 8}, {1, 3, 4}, {1, 3, 4}, wrt({4, 3, 3}), packed);
  add("added_mask", {2, 2, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, wrt({2, 1, 3, 4}), {});
  add("added_mask_groups", {2, 4, 3, 2}, {2, 2, 4, 2}, {2, 2, 4, 2}, wrt({2, 1, 1, 4}), {});
  add("seen", {1, 4, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, bools({2, 3}, {1, 0, 1, 0, 1, 1}), {});
  add("blind_query", {1, 2, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, bools({2, 3}, {0, 0, 0, 0, 1, 1}),
      {});
  add("blind_query_causal", {1, 2, 2, 2}, {1, 1, 2, 2}, {1, 1, 2, 2},
      bools({1, 2, 2, 2}, {0, 1, 1, 1, 1, 0, 1, 1}), causal);
  const auto grad = [&](const char* note, Ints gy, Ints q, Ints k, Ints v, CaseInput mask,
                        Attrs attrs) {
    GradCase row = own_case(
        "AttentionGrad", note,
        {wrt(std::move(gy)), wrt(std::move(q)), wrt(std::move(k)), wrt(std::move(v)), mask},
        std::move(attrs));
    row.outputs = 3;
    rows->push_back(row);
  };
  grad("plain", {2, 2, 3, 3}, {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, missing(), {});
  grad("causal_groups", {1, 4, 3, 2}, {1, 4, 3, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, missing(), causal);
  grad("packed_mask_per_head", {1, 3, 8}, {1, 3, 8}, {1, 3, 4}, {1, 3, 4}, wrt({4, 3, 3}), packed);
  grad("blind_query", {1, 2, 2, 2}, {1, 2, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 2},
       bools({2, 3}, {0, 0, 0, 0, 1, 1}), {});
  // One column: nothing is hidden, so that no sum is infinite.
  rows->push_back(own_case("CausalMask", "one_column", {wrt({2, 3, 1})}));
  rows->push_back(onnx_case("Trilu", "lower", {wrt({2, 3, 4})}, {{"upper", int64_t{0}}}));
  rows->push_back(onnx_case("Trilu", "upper", {wrt({4, 3})}));
  CaseInput diagonal = indices({}, {1});
  diagonal.constant = true;
  rows->push_back(onnx_case("Trilu", "above_diagonal", {wrt({3, 4}), diagonal}));
}

void add_loss(std::vector<GradCase>* rows) {
  const auto attrs = [](const char* reduction, double smoothing) -> Attrs {
    return {{"reduction", std::string(reduction)}, {"label_smoothing", smoothing}};
  };
  Attrs ignoring = attrs("mean", 0.1);
  ignoring.set("ignore_index", int64_t{-100});
  const CaseInput flat = indices({4}, {2, 0, 1, 2}), some = indices({4}, {2, -100, 1, -100});
  const CaseInput grid = indices({2, 3}, {0, 1, 2, 2, 1, 0});
  const std::string op = "SoftmaxCrossEntropyLoss", grad = op + "Grad";
  rows->push_back(onnx_case(op, "mean", {wrt({4, 3}), flat}));
  rows->push_back(onnx_case(op, "sum_smooth", {wrt({4, 3}), flat}, attrs("sum", 0.2)));
  rows->push_back(onnx_case(op, "none_grid", {wrt({2, 3, 3}), grid}, attrs("none", 0.3)));
  rows->push_back(onnx_case(op, "ignoring", {wrt({4, 3}), some}, ignoring));
  rows->push_back(onnx_case(op, "no_rows", {wrt({0, 3}), indices({0}, {})}, ignoring));
  rows->push_back(own_case(grad, "mean", {wrt({}), wrt({4, 3}), flat}));
  rows->push_back(own_case(grad, "ignoring", {wrt({}), wrt({4, 3}), some}, ignoring));
  rows->push_back(
      own_case(grad, "none_grid", {wrt({2, 3}), wrt({2, 3, 3}), grid}, attrs("none", 0.3)));
  const Attrs wide{{"dtype", int64_t{GR_FLOAT64}}};
  Attrs counting = wide;
  counting.set("ignore_index", int64_t{-100});
  rows->push_back(own_case("CountTargets", "some", {some}, counting));
  rows->push_back(own_case("CountTargets", "all", {grid}, wide));
  rows->push_back(own_case("CountTargets", "none", {indices({0}, {})}, wide));
}

void add_rest(std::vector<GradCase>* rows) {
  rows->push_back(onnx_case("Dropout", "evaluation", {wrt({3, 4}), number(0.25)}));
  rows->push_back(own_case("Dropout", "training", {wrt({3, 7}), indices({3}, {11, 5, 1})},
                           {{"ratio", 0.4}, {"stream", int64_t{77}}}));
  rows->push_back(own_case("SumSquares", "matrix", {wrt({3, 4})}));
  rows->push_back(own_case("SumSquares", "scalar", {wrt({})}));
  rows->push_back(own_case("SumSquares", "empty", {wrt({0, 2})}));
  const double infinity = std::numeric_limits<double>::infinity();
  rows->push_back(own_case("IsFinite", "each", {fixed_of({4}, {1, infinity, -infinity, NAN})}));
  GradCase adamw = own_case("AdamW", "step_3",
                            {fixed({2, 3}), fixed({2, 3}), fixed({2, 3}, -1, 1),
                             fixed({2, 3}, 0.1, 1), fixed_of({}, {0.1}), fixed_of({}, {3})},
                            {{"weight_decay", 0.1}});
  adamw.outputs = 3;
  rows->push_back(adamw);
  adamw.name += "_gate";
  adamw.inputs.push_back(bools({}, {1}));
  rows->push_back(adamw);
}

}  // namespace

std::vector<GradCase> nn_cases() {
  std::vector<GradCase> rows;
  add_softmax(&rows);
  add_norm(&rows);
  add_batch_norm(&rows);
  add_conv(&rows);
  add_pool(&rows);
  add_rotary(&rows);
  add_attention(&rows);
  add_loss(&rows);
  add_rest(&rows);
  return rows;
}

}  // namespace gradrack::test
