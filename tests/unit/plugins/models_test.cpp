// SPDX-License-Identifier: Apache-2.0
// Model plugins `gpt` and `cnn`: what they declare in a graph, and what they refuse.
//
// The numbers that the graphs give are checked against PyTorch elsewhere; here it is names, shapes,
// order, stages and messages.
#include "tests/unit/plugins/built_model.hpp"

namespace gradrack {
namespace {

using testing::Built;
using testing::expect_all_gradients;
using testing::expect_refused;
using testing::OptionTexts;

gr_data_info_t text_info(int64_t vocab, int64_t block) {
  gr_data_info_t info = {};
  info.struct_size = sizeof info;
  info.vocab = vocab;
  info.block = block;
  return info;
}

Built gpt(const OptionTexts& texts, bool training = true) {
  const gr_data_info_t info = text_info(65, 16);
  return Built("gpt", texts, &info, training);
}

const OptionTexts kSmall = {{"layers", "1"}, {"heads", "4"}, {"kv_heads", "2"}, {"dim", "32"}};

OptionTexts small_with(const OptionTexts& more) {
  OptionTexts texts = more;
  texts.insert(kSmall.begin(), kSmall.end());
  return texts;
}

TEST(Gpt, DeclaresParametersInOrderOfUse) {
  const Built model = gpt(kSmall);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter),
            (std::vector<std::string>{
                "tok_emb.weight", "blocks.0.norm1.weight", "blocks.0.attn.q.weight",
                "blocks.0.attn.k.weight", "blocks.0.attn.v.weight", "blocks.0.attn.proj.weight",
                "blocks.0.norm2.weight", "blocks.0.mlp.gate.weight", "blocks.0.mlp.up.weight",
                "blocks.0.mlp.down.weight", "norm_f.weight"}));
}

TEST(Gpt, StoresWeightsInOut) {
  const Built model = gpt(kSmall);
  EXPECT_EQ(model.shape("tok_emb.weight"), "float32[65, 32]");
  EXPECT_EQ(model.shape("blocks.0.attn.k.weight"), "float32[32, 16]");
  EXPECT_EQ(model.shape("blocks.0.mlp.gate.weight"), "float32[32, 88]");
  EXPECT_EQ(model.shape("blocks.0.mlp.down.weight"), "float32[88, 32]");
}

TEST(Gpt, DeclaresTheOtherVariant) {
  const Built model = gpt(small_with({{"norm", "layer"},
                                      {"positions", "learned"},
                                      {"ffn", "gelu"},
                                      {"tied", "false"},
                                      {"bias", "true"}}));
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter), (std::vector<std::string>{"tok_emb.weight",
                                                                       "pos_emb.weight",
                                                                       "blocks.0.norm1.weight",
                                                                       "blocks.0.norm1.bias",
                                                                       "blocks.0.attn.q.weight",
                                                                       "blocks.0.attn.q.bias",
                                                                       "blocks.0.attn.k.weight",
                                                                       "blocks.0.attn.k.bias",
                                                                       "blocks.0.attn.v.weight",
                                                                       "blocks.0.attn.v.bias",
                                                                       "blocks.0.attn.proj.weight",
                                                                       "blocks.0.attn.proj.bias",
                                                                       "blocks.0.norm2.weight",
                                                                       "blocks.0.norm2.bias",
                                                                       "blocks.0.mlp.up.weight",
                                                                       "blocks.0.mlp.up.bias",
                                                                       "blocks.0.mlp.down.weight",
                                                                       "blocks.0.mlp.down.bias",
                                                                       "norm_f.weight",
                                                                       "norm_f.bias",
                                                                       "head.weight"}));
  EXPECT_EQ(model.shape("pos_emb.weight"), "float32[16, 32]");
  EXPECT_EQ(model.shape("blocks.0.mlp.up.weight"), "float32[32, 128]");
  EXPECT_EQ(model.shape("head.weight"), "float32[32, 65]");
  EXPECT_EQ(model.count("RotaryEmbedding"), 0u);
}

TEST(Gpt, GivesInputsOutputsAndStages) {
  const Built model = gpt(small_with({{"layers", "2"}}));
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.shape("tokens"), "int64[batch, 16]");
  EXPECT_EQ(model.source("targets").limit, 65);
  EXPECT_EQ(to_text(model.graph.value(model.graph.find_output("logits")).type),
            "float32[batch, 16, 65]");
  ASSERT_EQ(model.graph.objectives().size(), 1u);
  EXPECT_EQ(model.graph.objectives()[0].name, "loss");
  EXPECT_EQ(model.graph.stages(),
            (std::vector<std::string>{"embed", "blocks.0", "blocks.1", "head"}));
}

TEST(Gpt, KeepsRolesForTheOptimizersGroups) {
  const Built model = gpt(small_with({{"bias", "true"}}));
  EXPECT_EQ(model.source("tok_emb.weight").role, GR_ROLE_EMBEDDING);
  EXPECT_EQ(model.source("blocks.0.norm1.weight").role, GR_ROLE_NORM);
  EXPECT_EQ(model.source("blocks.0.attn.q.bias").role, GR_ROLE_BIAS);
  EXPECT_EQ(model.source("blocks.0.attn.q.weight").role, GR_ROLE_WEIGHT);
}

TEST(Gpt, ScalesResidualInitWhenAsked) {
  EXPECT_EQ(gpt(kSmall).source("blocks.0.mlp.down.weight").init.b, 0.02);
  const Built scaled = gpt(small_with({{"residual_scaling", "true"}, {"layers", "2"}}));
  EXPECT_DOUBLE_EQ(scaled.source("blocks.0.attn.proj.weight").init.b, 0.01);
  EXPECT_DOUBLE_EQ(scaled.source("blocks.0.mlp.down.weight").init.b, 0.01);
  EXPECT_DOUBLE_EQ(scaled.source("blocks.0.mlp.up.weight").init.b, 0.02);
}

TEST(Gpt, DropsOutInTrainingOnly) {
  const OptionTexts texts = small_with({{"dropout", "0.1"}});
  const Built training = gpt(texts, true);
  ASSERT_EQ(training.status, GR_OK) << training.message;
  EXPECT_EQ(training.count("Dropout"), 3u);  // embedding, attention, mlp
  const Built evaluation = gpt(texts, false);
  EXPECT_EQ(evaluation.count("Dropout"), 0u);
  EXPECT_EQ(training.names(Source::kParameter), evaluation.names(Source::kParameter));
}

TEST(Gpt, ReadsShorterRowsThanItsBlock) {
  const Built model = gpt(small_with({{"block", "32"}, {"positions", "learned"}}));
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.shape("pos_emb.weight"), "float32[32, 32]");
  EXPECT_EQ(model.shape("tokens"), "int64[batch, 16]");
}

TEST(Gpt, GivesEveryParameterAGradient) {
  Built rotary = gpt(small_with({{"dropout", "0.1"}}));
  expect_all_gradients(rotary);
  Built learned = gpt(small_with({{"norm", "layer"},
                                  {"positions", "learned"},
                                  {"ffn", "gelu"},
                                  {"tied", "false"},
                                  {"bias", "true"}}));
  expect_all_gradients(learned);
}

struct Refusal {
  OptionTexts texts;
  const char* message;
};

TEST(Gpt, RefusesSizesThatDoNotFit) {
  const Refusal cases[] = {
      {{{"dim", "30"}}, "heads: dim 30 cannot be split into 4 heads"},
      {{{"kv_heads", "3"}}, "kv_heads: 4 heads cannot share 3"},
      {{{"dim", "12"}}, "heads: a head is 3 wide"},
      {{{"vocab", "64"}}, "vocab: the data has 65 token ids, the model's vocab is 64"},
      {{{"block", "8"}}, "block: the data has rows of 16 tokens, the model's block is 8"},
  };
  for (const Refusal& c : cases) {
    const Built model = gpt(c.texts);
    EXPECT_EQ(model.status, GR_INVALID_ARGUMENT) << c.message;
    EXPECT_NE(model.message.find(c.message), std::string::npos) << model.message;
  }
}

TEST(Gpt, AsksForAVocabularyWhenTheDataHasNone) {
  const Built model("gpt", kSmall, nullptr, true);
  EXPECT_EQ(model.status, GR_INVALID_ARGUMENT);
  EXPECT_NE(model.message.find("vocab: the data has no vocabulary"), std::string::npos);
  const Built sized("gpt", small_with({{"vocab", "65"}, {"block", "16"}}), nullptr, true);
  EXPECT_EQ(sized.status, GR_OK) << sized.message;
}

struct Images {
  explicit Images(int64_t side, uint32_t rank = 4) {
    output.name = "images";
    output.dtype = GR_FLOAT32;
    output.rank = rank;
    output.dims[0] = {0, "batch"};
    output.dims[1] = {1, nullptr};
    output.dims[2] = output.dims[3] = {side, nullptr};
    info.struct_size = sizeof info;
    info.output_count = 1;
    info.outputs = &output;
    info.output_stride = sizeof output;
    info.classes = 10;
  }

  gr_data_output_t output = {};
  gr_data_info_t info = {};
};

TEST(Cnn, DeclaresParametersAndBuffers) {
  const Images images(8);
  const Built model("cnn", {}, &images.info, true);
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter),
            (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight",
                                      "bn2.weight", "bn2.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(model.names(Source::kBuffer),
            (std::vector<std::string>{"bn1.running_mean", "bn1.running_var", "bn2.running_mean",
                                      "bn2.running_var"}));
  EXPECT_EQ(model.shape("conv2.weight"), "float32[32, 16, 3, 3]");
  EXPECT_EQ(model.shape("fc.weight"), "float32[32, 10]");
  EXPECT_EQ(to_text(model.graph.value(model.graph.find_output("logits")).type),
            "float32[batch, 10]");
  EXPECT_EQ(model.graph.stages(), (std::vector<std::string>{"conv1", "conv2", "head"}));
}

TEST(Cnn, MovesRunningStatisticsInTrainingOnly) {
  const Images images(8);
  const Built training("cnn", {}, &images.info, true);
  const Built evaluation("cnn", {}, &images.info, false);
  ASSERT_EQ(evaluation.status, GR_OK) << evaluation.message;
  EXPECT_EQ(training.graph.writes().size(), 4u);
  EXPECT_EQ(evaluation.graph.writes().size(), 0u);
  EXPECT_EQ(training.names(Source::kBuffer), evaluation.names(Source::kBuffer));
}

TEST(Cnn, GivesEveryParameterAGradient) {
  const Images images(8);
  Built model("cnn", {}, &images.info, true);
  expect_all_gradients(model);
}

TEST(Cnn, RefusesWhatItCannotRead) {
  const Images flat(8, 2), tiny(2), good(8);
  expect_refused(
      "cnn", {
                 {{}, nullptr, "data: the model takes the size of the images from the data"},
                 {{}, &flat.info, "data: images have rank 2"},
                 {{{"channels", "[8, 8, 8]"}},
                  &tiny.info,
                  "channels: images of 2x2 cannot be halved 2 times"},
                 {{{"classes", "3"}}, &good.info, "classes: the data has 10 classes, the model 3"},
                 {{{"channels", "[]"}}, &good.info, "channels: got an empty list"},
             });
}

}  // namespace
}  // namespace gradrack
