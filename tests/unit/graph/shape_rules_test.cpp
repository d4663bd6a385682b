// SPDX-License-Identifier: Apache-2.0
// Shape rules of products, slices, joins, indices and reductions.
#include <gtest/gtest.h>

#include "tests/unit/graph/shape_rig.hpp"

namespace gradrack {

using test::ShapeRig;

namespace {
const Dim kBatch = Dim::symbol("batch");
const Dim kTime = Dim::symbol("time");
}  // namespace

TEST(ShapeRules, MatMulFollowsNumpy) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("MatMul", {rig.x({kBatch, kTime, 4}), rig.x({4, 5})}), "[batch, time, 5]");
  EXPECT_EQ(rig.shape("MatMul", {rig.x({4}), rig.x({2, 4, 5})}), "[2, 5]");
  EXPECT_EQ(rig.shape("MatMul", {rig.x({2, 3, 4}), rig.x({4})}), "[2, 3]");
  EXPECT_EQ(rig.shape("MatMul", {rig.x({4}), rig.x({4})}), "[]");
  EXPECT_EQ(rig.shape("MatMul", {rig.x({2, 1, 3, 4}), rig.x({5, 4, 6})}), "[2, 5, 3, 6]");
}

TEST(ShapeRules, MatMulNamesTheInnerDims) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("MatMul", {rig.x({3, 4}), rig.x({5, 6})}), "refused");
  EXPECT_TRUE(rig.error_has("4 against 5")) << rig.last_error;
  EXPECT_EQ(rig.shape("MatMul", {rig.x({}), rig.x({5, 6})}), "refused");
}

TEST(ShapeRules, ONX04_GemmBroadcastsCOneWayOnly) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Gemm", {rig.x({3, 3}), rig.x({3, 1}), rig.x({1, 4})}), "refused");
  EXPECT_TRUE(rig.error_has("C [1, 4] does not broadcast to [3, 1]")) << rig.last_error;
  EXPECT_EQ(rig.shape("Gemm", {rig.x({3, 3}), rig.x({3, 4}), rig.x({1, 4})}), "[3, 4]");
}

TEST(ShapeRules, SliceClampsNumbersAsOnnx) {
  ShapeRig rig;
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return rig.shape(
        "Slice", {rig.x({7}), rig.ints({start}), rig.ints({end}), rig.ints({0}), rig.ints({step})});
  };
  EXPECT_EQ(slice(1, 3, 1), "[2]");
  EXPECT_EQ(slice(-3, INT64_MAX, 1), "[3]");
  EXPECT_EQ(slice(0, 100, 3), "[3]");
  EXPECT_EQ(slice(5, 2, 1), "[0]");
  EXPECT_EQ(slice(-1, INT64_MIN, -1), "[7]");
  EXPECT_EQ(slice(100, 0, -2), "[3]");
  EXPECT_EQ(slice(0, 1, 0), "refused");
}

TEST(ShapeRules, SliceTakesSymbolicBounds) {
  ShapeRig rig;
  const ValueId tokens = rig.x({kBatch, kTime}, GR_INT64);
  const ValueId time = rig.op("Shape", {tokens}, {{"start", int64_t{1}}});
  EXPECT_EQ(rig.shape("Slice", {rig.x({64, 8}), rig.ints({0}), time, rig.ints({0})}), "[time, 8]");
  EXPECT_EQ(rig.shape("Slice", {tokens, rig.ints({0}), rig.ints({-1}), rig.ints({1})}),
            "[batch, time-1]");
  for (const int64_t far : {INT64_MAX, int64_t{INT32_MAX}, int64_t{1'000'000'000}}) {
    EXPECT_EQ(rig.shape("Slice", {tokens, rig.ints({1}), rig.ints({far}), rig.ints({1})}),
              "[batch, time-1]");
  }
}

TEST(ShapeRules, PadRefusesOtherModesAsUnsupported) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Pad", {rig.x({2, kTime}), rig.ints({1, 0, 0, 2})}), "[3, time+2]");
  EXPECT_EQ(rig.shape("Pad", {rig.x({2}), rig.ints({1, 1})}, {{"mode", std::string("reflect")}}),
            "refused");
  EXPECT_EQ(rig.last_code, GR_UNSUPPORTED);
  EXPECT_EQ(rig.shape("Pad", {rig.x({2}), rig.ints({-1, 1})}), "refused");
  EXPECT_EQ(rig.shape("Pad", {rig.x({2, 2}), rig.ints({1, 1})}), "refused");
}

TEST(ShapeRules, ConcatAddsSymbolicSizes) {
  ShapeRig rig;
  const Attrs axis_1 = {{"axis", int64_t{1}}};
  EXPECT_EQ(rig.shape("Concat", {rig.x({2, kTime}), rig.x({2, 3})}, axis_1), "[2, time+3]");
  EXPECT_EQ(rig.shape("Concat", {rig.x({2, 3}), rig.x({4, 3})}, axis_1), "refused");
  EXPECT_TRUE(rig.error_has("differ beside axis 1")) << rig.last_error;
}

TEST(ShapeRules, SplitDividesOrSaysWhyNot) {
  ShapeRig rig;
  const auto split = [&](Shape shape, size_t outputs, Attrs attrs) -> std::string {
    auto made = rig.graph.add_node("", "Split", {rig.x(std::move(shape))}, attrs, outputs);
    if (!made.ok()) return "refused";
    std::string text;
    for (const ValueId id : *made) text += to_text(rig.graph.value(id).type.shape);
    return text;
  };
  EXPECT_EQ(split({7}, 3, {{"num_outputs", int64_t{3}}}), "[3][3][1]");
  EXPECT_EQ(split({kTime * Dim(2)}, 2, {}), "[time][time]");
  EXPECT_EQ(split({kTime}, 2, {}), "refused");
  EXPECT_EQ(split({6}, 3, {{"num_outputs", int64_t{2}}}), "refused");
  EXPECT_EQ(split({2}, 3, {}), "[1][1][0]");
}

TEST(ShapeRules, GatherPutsTheDimsOfIndicesInPlaceOfTheAxis) {
  ShapeRig rig;
  const ValueId tokens = rig.x({kBatch, kTime}, GR_INT64);
  EXPECT_EQ(rig.shape("Gather", {rig.x({65, 8}), tokens}), "[batch, time, 8]");
  EXPECT_EQ(rig.shape("Gather", {rig.x({2, 65}), tokens}, {{"axis", int64_t{-1}}}),
            "[2, batch, time]");
  EXPECT_EQ(rig.shape("Gather", {rig.x({65, 8}), rig.x({2})}), "refused");
  EXPECT_EQ(rig.shape("Gather", {rig.x({65, 8}), tokens}, {{"axis", int64_t{2}}}), "refused");
}

TEST(ShapeRules, ScatterElementsTakesFiveReductions) {
  ShapeRig rig;
  const ValueId at = rig.x({2, 2}, GR_INT64);
  EXPECT_EQ(rig.shape("ScatterElements", {rig.x({2, 3}), at, rig.x({2, 2})}), "[2, 3]");
  const auto reduced = [&](const char* how) {
    return rig.shape("ScatterElements", {rig.x({2, 3}), at, rig.x({2, 2})},
                     {{"reduction", std::string(how)}});
  };
  for (const char* how : {"none", "add", "mul", "max", "min"}) EXPECT_EQ(reduced(how), "[2, 3]");
  EXPECT_EQ(reduced("mean"), "refused");
  EXPECT_TRUE(rig.error_has("got mean")) << rig.last_error;
  EXPECT_EQ(
      rig.shape("ScatterElements", {rig.x({1, 3}), at, rig.x({2, 2})}, {{"axis", int64_t{1}}}),
      "refused");
}

TEST(ShapeRules, ReductionsTakeAxesAsAnInput) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 3, 4});
  EXPECT_EQ(rig.shape("ReduceSum", {x, rig.ints({-1})}), "[batch, 3, 1]");
  EXPECT_EQ(rig.shape("ReduceSum", {x, rig.ints({0, 2})}, {{"keepdims", int64_t{0}}}), "[3]");
  EXPECT_EQ(rig.shape("ReduceSum", {x}), "[1, 1, 1]");
  EXPECT_EQ(rig.shape("ReduceSum", {x}, {{"noop_with_empty_axes", int64_t{1}}}), "[batch, 3, 4]");
  EXPECT_EQ(rig.shape("ReduceSum", {x, rig.ints({3})}), "refused");
  EXPECT_EQ(rig.shape("ReduceSum", {x, rig.ints({0, 0})}), "refused");
}

TEST(ShapeRules, ArgMaxOverNothingIsRefused) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("ArgMax", {rig.x({2, 3})}, {{"axis", int64_t{1}}}), "[2, 1]");
  EXPECT_EQ(rig.shape("ArgMax", {rig.x({2, 0})}, {{"axis", int64_t{1}}}), "refused");
}

TEST(ShapeRules, CastRefusesWhatIsNoDtype) {
  ShapeRig rig;
  EXPECT_EQ(rig.shape("Cast", {rig.x({2})}, {{"to", int64_t{GR_INT32}}}), "[2]");
  EXPECT_EQ(rig.shape("Cast", {rig.x({2})}, {{"to", int64_t{1}}}), "refused");
}

}  // namespace gradrack
