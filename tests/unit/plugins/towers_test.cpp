// SPDX-License-Identifier: Apache-2.0
// Model plugin `towers`: names, shapes, stages, objectives, and that towers meet in the head alone.
#include <algorithm>

#include "tests/unit/plugins/built_model.hpp"

namespace gradrack {
namespace {

using testing::Built;
using testing::expect_all_gradients;
using testing::expect_refused;
using testing::OptionTexts;

/// What a source of `rank` - 1 dims of 4 each and ten classes declares.
struct Images {
  explicit Images(uint32_t rank, const char* name = "images") {
    output.name = name;
    output.dtype = GR_FLOAT32;
    output.rank = rank;
    output.dims[0] = {0, "batch"};
    for (uint32_t k = 1; k < rank; ++k) output.dims[k] = {4, nullptr};
    info.struct_size = sizeof info;
    info.output_count = 1;
    info.outputs = &output;
    info.output_stride = sizeof output;
    info.classes = 10;
  }
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  gr_data_output_t output = {};
  gr_data_info_t info = {};
};

Built towers(OptionTexts texts, uint32_t rank = 4) {
  const Images images(rank);
  texts.insert({{"depth", "2"}, {"width", "8"}});
  return Built("towers", texts, &images.info, true);
}

std::vector<std::string> objectives(const Built& model) {
  std::vector<std::string> names;
  for (const Objective& each : model.graph.objectives()) names.push_back(each.name);
  return names;
}

TEST(Towers, DeclaresParametersInOrderOfUse) {
  const Built model = towers({{"towers", "2"}});
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.names(Source::kParameter),
            (std::vector<std::string>{"towers.0.0.weight", "towers.0.0.bias", "towers.0.1.weight",
                                      "towers.0.1.bias", "towers.1.0.weight", "towers.1.0.bias",
                                      "towers.1.1.weight", "towers.1.1.bias", "head.weight",
                                      "head.bias"}));
  EXPECT_EQ(model.shape("towers.1.0.weight"), "float32[64, 8]");
  EXPECT_EQ(model.shape("towers.1.1.weight"), "float32[8, 8]");
  EXPECT_EQ(model.shape("head.weight"), "float32[8, 10]");
}

TEST(Towers, GivesEachTowerAStage) {
  const Built model = towers({{"towers", "3"}});
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.graph.stages(),
            (std::vector<std::string>{"towers.0", "towers.1", "towers.2", "head"}));
  EXPECT_EQ(objectives(model), std::vector<std::string>{"loss"});
  EXPECT_EQ(to_text(model.graph.value(model.graph.find_output("logits")).type),
            "float32[batch, 10]");
}

TEST(Towers, IsAChainWithOneTower) {
  const Built model = towers({{"towers", "1"}, {"depth", "5"}});
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(model.count("MatMul"), 6u);
  EXPECT_EQ(model.count("Relu"), 5u);
}

TEST(Towers, GivesEachTowerAHeadWhenAsked) {
  const Built model = towers({{"towers", "2"}, {"heads", "true"}});
  ASSERT_EQ(model.status, GR_OK) << model.message;
  EXPECT_EQ(objectives(model), (std::vector<std::string>{"tower0", "tower1"}));
  EXPECT_EQ(model.graph.stages(), (std::vector<std::string>{"towers.0", "towers.1"}));
  EXPECT_EQ(model.shape("heads.1.weight"), "float32[8, 10]");
  EXPECT_NE(model.graph.find_output("logits.tower1"), GR_NO_VALUE);
}

TEST(Towers, TakesFeaturesOfAnyRank) {
  for (const uint32_t rank : {2u, 3u}) {
    const Built model = towers({{"towers", "1"}}, rank);
    ASSERT_EQ(model.status, GR_OK) << model.message;
    EXPECT_EQ(model.shape("towers.0.0.weight"), rank == 2 ? "float32[4, 8]" : "float32[16, 8]");
  }
}

TEST(Towers, GivesEveryParameterAGradient) {
  for (const char* const heads : {"false", "true"}) {
    Built model = towers({{"towers", "2"}, {"heads", heads}});
    expect_all_gradients(model);
  }
}

TEST(Towers, RefusesWhatItCannotRead) {
  const Images good(4), flat(1), other(4, "pictures");
  expect_refused(
      "towers",
      {
          {{}, nullptr, "data: the model takes the number of features from the data"},
          {{}, &flat.info, "data: images have rank 1"},
          {{}, &other.info, "data: the data has no output named `images`"},
          {{{"classes", "3"}}, &good.info, "classes: the data has 10 classes, the model 3"},
      });
}

}  // namespace
}  // namespace gradrack
