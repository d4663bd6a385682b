// SPDX-License-Identifier: Apache-2.0
// Order `capped` against the published table: within each memory limit no more bubbles.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/unit/simulate/golden_table.hpp"
#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

constexpr double kRounding = 5e-5;  // the table has four decimals

struct Outcome {
  int better = 0, worse = 0;
};

/// How many rows `capped` solves better, and how many worse, than the column.
Outcome compare(const char* limit, double GoldenRow::*column) {
  Outcome out;
  for (const GoldenRow& row : kGoldenRows) {
    const SimTable table = table_of(golden_recipe(row, std::string(", memory_limit: ") + limit));
    const Simulation run = run_order(table, "capped").simulation;
    EXPECT_TRUE(check_memory(table, run).ok()) << row_name(row) << " at " << limit;
    if (run.bubble_rate < row.*column - kRounding) ++out.better;
    if (run.bubble_rate <= row.*column + kRounding) continue;
    ++out.worse;
    std::printf("%s at %s: %.4f, column %.4f\n", row_name(row).c_str(), limit, run.bubble_rate,
                row.*column);
  }
  return out;
}

TEST(GoldenCapped, OnceTheMemory) { EXPECT_EQ(compare("1", &GoldenRow::h1).worse, 0); }

TEST(GoldenCapped, OneAndAQuarter) {
  const Outcome out = compare("1.25", &GoldenRow::cap125);
  EXPECT_EQ(out.worse, 0);
  EXPECT_GE(out.better, 3);
}

TEST(GoldenCapped, OneAndAHalf) {
  const Outcome out = compare("1.5", &GoldenRow::cap150);
  EXPECT_EQ(out.worse, 0);
  EXPECT_GE(out.better, 3);
}

TEST(GoldenCapped, TwiceTheMemory) {
  const Outcome out = compare("2", &GoldenRow::two);
  EXPECT_EQ(out.worse, 0);
  EXPECT_GE(out.better, 3);
}

TEST(GoldenCapped, EqualTablesGetEqualAnswers) {
  const SimTable table = table_of(golden_recipe(kGoldenRows[0], ", memory_limit: 1.25"));
  const auto first = ask_order(table, "capped");
  const auto second = ask_order(table, "capped");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->order, second->order);
}

TEST(GoldenCapped, RefusesALimitBelowOneMicrobatchAndSaysTheLeast) {
  const SimTable table = table_of(golden_recipe(kGoldenRows[0], ", memory_limit: 0.1"));
  const auto answer = ask_order(table, "capped");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), GR_FAILED_PRECONDITION);
  EXPECT_NE(answer.status().message().find("206045184"), std::string::npos)
      << answer.status().message();
}

TEST(GoldenCapped, TheLeastLimitIsKept) {
  const SimTable table = table_of(golden_recipe(kGoldenRows[0], ", memory_limit: 0.125"));
  const Simulation run = run_order(table, "capped").simulation;
  EXPECT_TRUE(check_memory(table, run).ok());
  EXPECT_EQ(run.devices[3].peak_bytes, table.devices[3].memory_limit);
}

}  // namespace
}  // namespace gradrack
