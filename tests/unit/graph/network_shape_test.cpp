// SPDX-License-Identifier: Apache-2.0
// Shape rules and refusals of network operators: windows, norms, losses, dropout.
#include <gtest/gtest.h>

#include "tests/unit/graph/shape_rig.hpp"

namespace gradrack {

using test::ShapeRig;
using Ints = std::vector<int64_t>;

namespace {
const Dim kBatch = Dim::symbol("batch");
const Dim kHeight = Dim::symbol("height");
}  // namespace

TEST(NetworkShapes, ConvKeepsNamesThroughStridesAndPads) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 3, kHeight, 9}), w = rig.x({8, 3, 3, 3});
  EXPECT_EQ(rig.shape("Conv", {x, w}), "[batch, 8, height-2, 7]");
  EXPECT_EQ(rig.shape("Conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}}), "[batch, 8, height, 9]");
  EXPECT_EQ(rig.shape("Conv", {x, w}, {{"strides", Ints{2, 2}}}),
            "[batch, 8, floor((height-3)/(2))+1, 4]");
  EXPECT_EQ(
      rig.shape("Conv", {x, w}, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{1, 2}}}),
      "[batch, 8, height, 5]");
}

TEST(NetworkShapes, ConvRefusesWhatDoesNotFit) {
  ShapeRig rig;
  const ValueId x = rig.x({2, 4, 5, 5});
  EXPECT_EQ(rig.shape("Conv", {x, rig.x({6, 3, 3, 3})}), "refused");
  EXPECT_TRUE(rig.error_has("C/group = 4/1 channels, got 3")) << rig.last_error;
  EXPECT_EQ(rig.shape("Conv", {x, rig.x({6, 4, 7, 7})}), "refused");
  EXPECT_TRUE(rig.error_has("a window of 7 does not fit a padded size of 5")) << rig.last_error;
  EXPECT_EQ(rig.shape("Conv", {x, rig.x({5, 2, 3, 3})}, {{"group", int64_t{2}}}), "refused");
  EXPECT_TRUE(rig.error_has("group must divide the 5 output channels")) << rig.last_error;
  EXPECT_EQ(rig.shape("Conv", {x, rig.x({6, 4, 3, 3})}, {{"strides", Ints{2}}}), "refused");
  EXPECT_TRUE(rig.error_has("strides needs 2 numbers, got 1")) << rig.last_error;
}

TEST(NetworkShapes, PoolsRoundUpWithCeilMode) {
  ShapeRig rig;
  const Attrs floor{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  Attrs ceil = floor;
  ceil.set("ceil_mode", int64_t{1});
  const ValueId x = rig.x({kBatch, 3, 5, 6});
  EXPECT_EQ(rig.shape("MaxPool", {x}, floor), "[batch, 3, 2, 3]");
  EXPECT_EQ(rig.shape("AveragePool", {x}, ceil), "[batch, 3, 3, 3]");
  EXPECT_EQ(rig.shape("MaxPool", {rig.x({kBatch, 3, kHeight, 6})}, ceil), "refused");
  EXPECT_EQ(rig.last_code, GR_UNSUPPORTED);
  EXPECT_EQ(rig.shape("GlobalAveragePool", {x}), "[batch, 3, 1, 1]");
}

TEST(NetworkShapes, CeilModeLeavesOutAWindowThatStartsInThePadding) {
  ShapeRig rig;
  const Attrs attrs{{"kernel_shape", Ints{2}},
                    {"strides", Ints{3}},
                    {"pads", Ints{0, 1}},
                    {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(rig.shape("MaxPool", {rig.x({1, 1, 3})}, attrs), "[1, 1, 1]");
}

TEST(NetworkShapes, MaxPoolRefusesIndicesWhenBuilding) {
  ShapeRig rig;
  const ValueId x = rig.x({1, 1, 4, 4});
  const auto made = rig.graph.add_node("", "MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}}, 2);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), GR_UNSUPPORTED);
  EXPECT_NE(made.status().message().find("Indices"), std::string::npos);
}

TEST(NetworkShapes, LayerNormWantsTheScaleOfItsAxes) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 4, 6});
  EXPECT_EQ(rig.shape("LayerNormalization", {x, rig.x({6})}), "[batch, 4, 6]");
  EXPECT_EQ(rig.shape("LayerNormalization", {x, rig.x({6})}, {{"axis", int64_t{1}}}), "refused");
  EXPECT_TRUE(rig.error_has("must be float32[4, 6], got float32[6]")) << rig.last_error;
}

TEST(NetworkShapes, GroupNormWantsGroupsThatDivide) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 6, 4}), c = rig.x({6});
  EXPECT_EQ(rig.shape("GroupNormalization", {x, c, c}, {{"num_groups", int64_t{4}}}), "refused");
  EXPECT_TRUE(rig.error_has("num_groups must divide the 6 channels, got 4")) << rig.last_error;
}

TEST(NetworkShapes, BatchNormMakesRunningStatisticsInTrainingAlone) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 3, 4}), c = rig.x({3});
  const auto made = rig.graph.add_node("", "BatchNormalization", {x, c, c, c, c}, {}, 3);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("training_mode=1"), std::string::npos);
}

TEST(NetworkShapes, LossWantsClassesOnAxisOneAndOneLabelARow) {
  ShapeRig rig;
  const ValueId scores = rig.x({kBatch, 10});
  const std::string op = "SoftmaxCrossEntropyLoss";
  EXPECT_EQ(rig.shape(op, {scores, rig.x({kBatch}, GR_INT64)}), "[]");
  EXPECT_EQ(
      rig.shape(op, {scores, rig.x({kBatch}, GR_INT64)}, {{"reduction", std::string("none")}}),
      "[batch]");
  EXPECT_EQ(rig.shape(op, {scores, rig.x({kBatch, 10}, GR_INT64)}), "refused");
  EXPECT_EQ(rig.shape(op, {scores, rig.x({kBatch}, GR_INT64), rig.x({10})}), "refused");
  EXPECT_EQ(rig.last_code, GR_UNSUPPORTED);
  EXPECT_EQ(rig.shape(op, {scores, rig.x({kBatch}, GR_INT64)}, {{"label_smoothing", 1.0}}),
            "refused");
}

TEST(NetworkShapes, DropoutWantsAConstantMode) {
  ShapeRig rig;
  const ValueId x = rig.x({4});
  EXPECT_EQ(rig.shape("Dropout", {x, GR_NO_VALUE, rig.x({}, GR_BOOL)}), "refused");
  EXPECT_TRUE(rig.error_has("training_mode must be a constant")) << rig.last_error;
  EXPECT_EQ(rig.shape("Dropout", {x}), "[4]");
}

TEST(NetworkShapes, RotaryChecksItsCaches) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 2, 8, 6}), ids = rig.x({kBatch, 8}, GR_INT64);
  const ValueId cache = rig.x({32, 3});
  EXPECT_EQ(rig.shape("RotaryEmbedding", {x, cache, cache, ids}), "[batch, 2, 8, 6]");
  EXPECT_EQ(rig.shape("RotaryEmbedding", {x, cache, cache}), "refused");
  EXPECT_TRUE(rig.error_has("cos_cache must be [B or 1, T, 3], got [32, 3]")) << rig.last_error;
  EXPECT_EQ(
      rig.shape("RotaryEmbedding", {x, cache, cache, ids}, {{"rotary_embedding_dim", int64_t{5}}}),
      "refused");
}

}  // namespace gradrack
