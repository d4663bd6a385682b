// SPDX-License-Identifier: Apache-2.0
// Shape rules of Reshape, Squeeze, Unsqueeze, Flatten, Transpose, Expand, with numbers and symbols.
#include <gtest/gtest.h>

#include "tests/unit/graph/shape_rig.hpp"

namespace gradrack {

using test::ShapeRig;

namespace {
const Dim kBatch = Dim::symbol("batch");
const Dim kTime = Dim::symbol("time");
const Attrs kAllowZero = {{"allowzero", int64_t{1}}};
}  // namespace

TEST(ShapeRules, ONX03_ReshapeCopiesAndInfers) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3, 4}), rig.ints({0, -1})}), "[2, 12]");
}

TEST(ShapeRules, ONX03_ReshapeRefusesToInferFromNothing) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({0, 10}), rig.ints({0, 1, -1})}), "refused");
  EXPECT_TRUE(rig.error_has("cannot be inferred")) << rig.last_error;
}

TEST(ShapeRules, ONX03_AllowzeroDoesNotTakeZeroWithMinusOne) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({0, 4}), rig.ints({0, -1})}, kAllowZero), "refused");
  EXPECT_TRUE(rig.error_has("allowzero=1")) << rig.last_error;
}

TEST(ShapeRules, ONX03_ReshapeOfAnEmptyTensor) {
  ShapeRig rig;
  const ValueId y = rig.op("Reshape", {rig.x({0, 8, 2}), rig.ints({4, 2, -1})});
  ASSERT_NE(y, GR_NO_VALUE) << rig.last_error;
  EXPECT_EQ(to_text(rig.graph.value(y).type.shape), "[4, 2, 0]");
  EXPECT_EQ(rig.shape("Reshape", {y, rig.ints({0, 0, 4})}, kAllowZero), "[0, 0, 4]");
}

TEST(ShapeRules, ONX03_AllowzeroWithoutZerosInfers) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({1, 32, 5, 5}), rig.ints({-1, 2, 4, 4, 5, 5})}, kAllowZero),
            "[1, 2, 4, 4, 5, 5]");
}

TEST(ShapeRules, ReshapeRefusesOtherElementCounts) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3}), rig.ints({5})}), "refused");
  EXPECT_TRUE(rig.error_has("6 elements")) << rig.last_error;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3}), rig.ints({-1, 4})}), "refused");
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3}), rig.ints({-1, -1})}), "refused");
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3}), rig.ints({2, 3, 0})}), "refused");
}

TEST(ShapeRules, ONX12_BatchSizeBakedIntoAReshapeIsRefusedAtOnce) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({kBatch, 16, 4, 4}), rig.ints({1, 256})}), "refused");
  EXPECT_TRUE(rig.error_has("256*batch")) << rig.last_error;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({kBatch, 16, 4, 4}), rig.ints({-1, 256})}), "[batch, 256]");
}

TEST(ShapeRules, ReshapeSplitsAndJoinsSymbolicDims) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, kTime, 64});
  EXPECT_EQ(rig.shape("Reshape", {x, rig.ints({0, 0, 4, 16})}), "[batch, time, 4, 16]");
  EXPECT_EQ(rig.shape("Reshape", {x, rig.ints({-1, 64})}), "[batch*time, 64]");
  const ValueId flat = rig.op("Reshape", {x, rig.ints({-1, 64})});
  EXPECT_EQ(rig.shape("Reshape", {flat, rig.op("Shape", {x})}), "[batch, time, 64]");
}

TEST(ShapeRules, ShapesComputedInTheGraphStayKnown) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, kTime, 64});
  const ValueId lead = rig.op("Shape", {x}, {{"end", int64_t{2}}});
  const ValueId width = rig.op("Gather", {rig.op("Shape", {x}), rig.ints({2})});
  const ValueId half = rig.op("Div", {width, rig.ints({2})});
  const ValueId two = rig.op("Slice", {rig.ints({1, 2, 3}), rig.ints({1}), rig.ints({2})});
  const ValueId to = rig.op("Concat", {lead, two, half}, {{"axis", int64_t{0}}});
  EXPECT_EQ(rig.shape("Reshape", {x, to}), "[batch, time, 2, 32]");
  const ValueId rows =
      rig.op("Mul", {rig.op("Shape", {x}, {{"end", int64_t{1}}}),
                     rig.op("Shape", {x}, {{"start", int64_t{1}}, {"end", int64_t{2}}})});
  EXPECT_EQ(
      rig.shape("Reshape", {x, rig.op("Concat", {rows, rig.ints({64})}, {{"axis", int64_t{0}}})}),
      "[batch*time, 64]");
}

TEST(ShapeRules, ShapeThatIsNotKnownIsRefusedWithTheRemedy) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Reshape", {rig.x({2, 3}), rig.x({2}, GR_INT64)}), "refused");
  EXPECT_TRUE(rig.error_has("make it a constant or derive it from Shape")) << rig.last_error;
}

TEST(ShapeRules, ONX10_SqueezeTakesAxesAsAnInput) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({1, 3, 1, 5}), rig.ints({2})}), "[1, 3, 5]");
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({1, 3, 1, 5})}), "[3, 5]");
  EXPECT_EQ(rig.shape("Unsqueeze", {rig.x({2, 3}), rig.ints({-1})}), "[2, 3, 1]");
}

TEST(ShapeRules, ONX10_DuplicateAxesAreRefused) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({1, 3}), rig.ints({0, 0})}), "refused");
  EXPECT_TRUE(rig.error_has("axis 0 is named twice")) << rig.last_error;
  EXPECT_EQ(rig.shape("Unsqueeze", {rig.x({2, 3}), rig.ints({0, 0})}), "refused");
  EXPECT_EQ(rig.shape("Unsqueeze", {rig.x({2, 3}), rig.ints({0, -4})}), "refused");
}

TEST(ShapeRules, ONX10_AxesAsAnAttributeAreRefused) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({1, 3})}, {{"axes", std::vector<int64_t>{0}}}), "refused");
  EXPECT_TRUE(rig.error_has("has no attribute 'axes'")) << rig.last_error;
}

TEST(ShapeRules, SqueezeOfADimThatIsNotOneIsRefused) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({2, 3}), rig.ints({0})}), "refused");
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({kBatch, 3}), rig.ints({0})}), "refused");
  EXPECT_EQ(rig.shape("Squeeze", {rig.x({kBatch, 1})}), "[batch]");
}

TEST(ShapeRules, FlattenFoldsAroundTheAxis) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Flatten", {rig.x({kBatch, 3, 4})}), "[batch, 12]");
  EXPECT_EQ(rig.shape("Flatten", {rig.x({2, 3, 4})}, {{"axis", int64_t{0}}}), "[1, 24]");
  EXPECT_EQ(rig.shape("Flatten", {rig.x({2, 3, 4})}, {{"axis", int64_t{3}}}), "[24, 1]");
  EXPECT_EQ(rig.shape("Flatten", {rig.x({2, 3, 4})}, {{"axis", int64_t{4}}}), "refused");
}

TEST(ShapeRules, TransposeWantsAPermutation) {
  ShapeRig rig;
  const auto perm = [&](std::vector<int64_t> order) {
    return rig.shape("Transpose", {rig.x({2, kTime, 4})}, {{"perm", std::move(order)}});
  };
  EXPECT_EQ(perm({1, 2, 0}), "[time, 4, 2]");
  EXPECT_EQ(perm({0, 0, 1}), "refused");
  EXPECT_EQ(perm({0, 1}), "refused");
  EXPECT_EQ(perm({0, 1, 3}), "refused");
  EXPECT_EQ(rig.shape("Transpose", {rig.x({2, 3, 4})}), "[4, 3, 2]");
}

TEST(ShapeRules, ExpandBroadcastsBothWays) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Expand", {rig.x({3, 1}), rig.ints({2, 1, 6})}), "[2, 3, 6]");
  EXPECT_EQ(rig.shape("Expand", {rig.x({3, 4}), rig.ints({2})}), "refused");
}

TEST(ShapeRules, BroadcastNeedsEqualSymbols) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Add", {rig.x({kBatch, 1, 4}), rig.x({kTime, 1})}), "[batch, time, 4]");
  EXPECT_EQ(rig.shape("Add", {rig.x({kBatch, 4}), rig.x({kTime, 4})}), "refused");
  EXPECT_EQ(rig.shape("Add", {rig.x({0, 4}), rig.x({1, 4})}), "[0, 4]");
}

TEST(ShapeRules, MixedDtypesAreRefusedWithTheRemedy) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Add", {rig.x({2}), rig.x({2}, GR_FLOAT64)}), "refused");
  EXPECT_TRUE(rig.error_has("add a Cast")) << rig.last_error;
}

}  // namespace gradrack
