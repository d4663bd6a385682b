// SPDX-License-Identifier: Apache-2.0
// Shapes that exporters compute by nodes stay known: comparisons, choices, products, ranges.
#include <gtest/gtest.h>

#include "tests/unit/graph/shape_rig.hpp"

namespace gradrack {

using test::ShapeRig;

namespace {

const Dim kBatch = Dim::symbol("batch");

std::string known(const ShapeRig& rig, ValueId id) {
  const auto& contents = rig.graph.value(id).known;
  return contents.has_value() ? to_text(Shape(*contents)) : "unknown";
}

}  // namespace

TEST(KnownShapes, ExpandAsExportersWriteItTakesASymbolicBatch) {
  ShapeRig rig;
  // Where(shape == -1, ones, shape): a size is not -1, whatever it is.
  const ValueId shape = rig.op("Shape", {rig.x({kBatch, 3})});
  const ValueId ones =
      rig.op("ConstantOfShape", {rig.ints({2})}, {{"value", 1.0}, {"dtype", int64_t{GR_INT64}}});
  const ValueId minus = rig.op("Mul", {ones, rig.ints({-1})});
  const ValueId unset = rig.op("Equal", {shape, minus});
  EXPECT_EQ(known(rig, unset), "[0, 0]");
  const ValueId target = rig.op("Where", {unset, ones, shape});
  EXPECT_EQ(rig.shape("Expand", {rig.x({1, 3}), target}), "[batch, 3]");
}

TEST(KnownShapes, WhatSymbolsLeaveOpenIsUnknown) {
  ShapeRig rig;
  const ValueId batch = rig.op("Shape", {rig.x({kBatch})});
  EXPECT_EQ(known(rig, rig.op("Equal", {batch, rig.ints({4})})), "unknown");
  EXPECT_EQ(known(rig, rig.op("Less", {batch, rig.ints({4})})), "unknown");
  const ValueId less = rig.op("Sub", {batch, rig.ints({3})});  // may be negative
  EXPECT_EQ(known(rig, rig.op("Equal", {less, rig.ints({-1})})), "unknown");
  EXPECT_EQ(known(rig, rig.op("Less", {less, batch})), "[1]");
}

TEST(KnownShapes, SizesAndProductsAreKnown) {
  ShapeRig rig;
  const ValueId x = rig.x({kBatch, 3, 4});
  EXPECT_EQ(known(rig, rig.op("Size", {x})), "[12*batch]");
  const ValueId tail = rig.op("Shape", {x}, {{"start", int64_t{1}}});
  EXPECT_EQ(known(rig, rig.op("ReduceProd", {tail}, {{"keepdims", int64_t{0}}})), "[12]");
  EXPECT_EQ(known(rig, rig.op("Mod", {rig.ints({-7}), rig.ints({3})})), "[2]");
}

TEST(KnownShapes, RangesHaveSymbolicSizes) {
  ShapeRig rig;
  const ValueId size = rig.op("Size", {rig.x({kBatch})});
  const ValueId zero = rig.op("Squeeze", {rig.ints({0})});
  const ValueId one = rig.op("Squeeze", {rig.ints({1})});
  EXPECT_EQ(rig.shape("Range", {zero, size, one}), "[batch]");
  EXPECT_EQ(known(rig, rig.op("Range", {rig.ints({7}), rig.ints({1}), rig.ints({-2})})),
            "[7, 5, 3]");
  EXPECT_EQ(rig.shape("Range", {zero, size, zero}), "refused");
}

TEST(KnownShapes, ResizedDimsAreNumbersOrStay) {
  ShapeRig rig;
  const Attrs twice = {{"scales", std::vector<double>{1, 1, 2, 2}}};
  EXPECT_EQ(rig.shape("Resize", {rig.x({kBatch, 3, 4, 5})}, twice), "[batch, 3, 8, 10]");
  EXPECT_EQ(rig.shape("Resize", {rig.x({2, 3, kBatch, 5})}, twice), "refused");
  EXPECT_TRUE(rig.error_has("is a symbol")) << rig.last_error;
  EXPECT_EQ(rig.shape("Resize", {rig.x({2, 3}), rig.ints({2, 6})}), "[2, 6]");
  EXPECT_EQ(rig.shape("Resize", {rig.x({2, 3})}), "refused");
}

TEST(KnownShapes, ConvTransposeTakesASymbolicBatch) {
  ShapeRig rig;
  const Attrs attrs = {{"strides", std::vector<int64_t>{2, 2}},
                       {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                       {"output_padding", std::vector<int64_t>{1, 1}}};
  EXPECT_EQ(rig.shape("ConvTranspose", {rig.x({kBatch, 4, 8, 8}), rig.x({4, 6, 3, 3})}, attrs),
            "[batch, 6, 16, 16]");
  EXPECT_EQ(rig.shape("ConvTranspose", {rig.x({2, 3, 8, 8}), rig.x({4, 6, 3, 3})}), "refused");
}

TEST(KnownShapes, EquationsAreChecked) {
  ShapeRig rig;
  const auto einsum = [&](const char* equation, std::vector<ValueId> inputs) {
    return rig.shape("Einsum", std::move(inputs), {{"equation", std::string(equation)}});
  };
  EXPECT_EQ(einsum("bi,ij->bj", {rig.x({kBatch, 3}), rig.x({3, 4})}), "[batch, 4]");
  EXPECT_EQ(einsum("bi,ij->bj", {rig.x({kBatch, 3}), rig.x({2, 4})}), "refused");
  EXPECT_EQ(einsum("bi,ij", {rig.x({kBatch, 3})}), "refused");
  EXPECT_EQ(einsum("bi->bq", {rig.x({kBatch, 3})}), "refused");
  EXPECT_EQ(einsum("b?->b", {rig.x({kBatch, 3})}), "refused");
}

}  // namespace gradrack
