// SPDX-License-Identifier: Apache-2.0
// Dim: arithmetic, canonical text, binding.
#include "core/graph/dim.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gradrack {

namespace {
const Dim kBatch = Dim::symbol("batch");
const Dim kTime = Dim::symbol("time");
}  // namespace

TEST(Dim, EqualPolynomialsAreEqualWhateverTheirHistory) {
  EXPECT_EQ((kBatch + Dim(1)) * (kTime - Dim(1)), kBatch * kTime - kBatch + kTime - Dim(1));
  EXPECT_EQ(kBatch - kBatch, Dim(0));
  EXPECT_EQ(kBatch * kTime, kTime * kBatch);
  EXPECT_FALSE(kBatch == kTime);
}

TEST(Dim, TextIsCanonical) {
  EXPECT_EQ((Dim(1) + kTime * Dim(2)).text(), "2*time+1");
  EXPECT_EQ((kTime * kBatch).text(), (kBatch * kTime).text());
  EXPECT_EQ(Dim(0).text(), "0");
  EXPECT_EQ((Dim(0) - kTime).text(), "-time");
}

TEST(Dim, DivisionThatComesOutEvenIsAPolynomial) {
  EXPECT_EQ((kBatch * kTime * Dim(64)).floor_div(Dim(64)), kBatch * kTime);
  EXPECT_EQ((kBatch * kTime * Dim(64)).floor_div(kTime), kBatch * Dim(64));
  EXPECT_EQ(kBatch.floor_div(kBatch), Dim(1));
}

TEST(Dim, DivisionOfNumbersRoundsDown) {
  EXPECT_EQ(Dim(7).floor_div(Dim(2)), Dim(3));
  EXPECT_EQ(Dim(-7).floor_div(Dim(2)), Dim(-4));
}

TEST(Dim, OddDivisionStaysAQuotientAndBinds) {
  const Dim half = (kTime - Dim(1)).floor_div(Dim(2));
  EXPECT_FALSE(half.is_number());
  EXPECT_EQ(*half.bind({{"time", 8}}), 3);
  EXPECT_EQ(half, (kTime - Dim(1)).floor_div(Dim(2)));
}

TEST(Dim, BindingNamesTheSymbolThatIsMissing) {
  EXPECT_EQ(*(kBatch * kTime + Dim(2)).bind({{"batch", 3}, {"time", 5}}), 17);
  const auto missing = (kBatch * kTime).bind({{"batch", 3}});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("'time'"), std::string::npos);
}

TEST(Dim, WhatDoesNotFitIsRefusedWhereItsNumberIsNeeded) {
  const Dim most(std::numeric_limits<int64_t>::max());
  const Bindings bindings = {{"batch", 3}, {"time", int64_t{1} << 40}};
  for (const Dim& dim : {most * Dim(2), most + Dim(1), Dim(-2) * most, most * Dim(2) * kBatch,
                         Dim(std::numeric_limits<int64_t>::min()) - Dim(1), kTime * kTime * kTime,
                         kTime * Dim(int64_t{1} << 30)}) {
    const auto bound = dim.bind(bindings);
    ASSERT_FALSE(bound.ok()) << *bound;
    EXPECT_NE(bound.status().message().find("64 bits"), std::string::npos)
        << bound.status().message();
  }
  EXPECT_FALSE((most * Dim(2)).is_number());
  EXPECT_EQ(*(kTime * Dim(1 << 20)).bind(bindings), int64_t{1} << 60);
}

TEST(Dim, ShapeCountsItsElements) {
  EXPECT_EQ(element_count({kBatch, Dim(3), kTime}), kBatch * kTime * Dim(3));
  EXPECT_EQ(element_count({}), Dim(1));
  EXPECT_EQ(to_text(Shape{kBatch, Dim(64)}), "[batch, 64]");
}

}  // namespace gradrack
