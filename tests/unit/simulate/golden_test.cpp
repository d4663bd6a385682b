// SPDX-License-Identifier: Apache-2.0
// Published schedules on published tables give the published bubbles; ours gives no more.
#include <gtest/gtest.h>

#include <ctime>

#include "tests/unit/simulate/golden_table.hpp"
#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

constexpr double kRounding = 5e-5;  // the table has four decimals

TEST(Golden, OneForwardOneBackward) {
  for (const GoldenRow& row : kGoldenRows) {
    const SimTable table = table_of(golden_recipe(row, ", backward: fused"));
    EXPECT_NEAR(run_order(table, "1f1b").simulation.bubble_rate, row.one_f_one_b, kRounding)
        << row_name(row);
  }
}

TEST(Golden, ZeroBubbleH1) {
  for (const GoldenRow& row : kGoldenRows) {
    const SimTable table = table_of(golden_recipe(row));
    EXPECT_NEAR(run_order(table, "zb_h1").simulation.bubble_rate, row.h1, kRounding)
        << row_name(row);
  }
}

TEST(Golden, ZeroBubbleH2) {
  for (const GoldenRow& row : kGoldenRows) {
    const SimTable table = table_of(golden_recipe(row));
    EXPECT_NEAR(run_order(table, "zb_h2").simulation.bubble_rate, row.h2, kRounding)
        << row_name(row);
  }
}

TEST(Golden, H1HoldsNoMoreThan1F1B) {
  for (const GoldenRow& row : {kGoldenRows[0], kGoldenRows[6]}) {
    const SimTable table = table_of(golden_recipe(row, ", memory_limit: 1"));
    const Simulation run = run_order(table, "zb_h1").simulation;
    EXPECT_TRUE(check_memory(table, run).ok());
    EXPECT_EQ(run.devices[0].peak_bytes, table.devices[0].memory_limit);
    const Simulation more = run_order(table, "zb_h2").simulation;
    EXPECT_FALSE(check_memory(table, more).ok());
  }
}

/// Rows where `capped` beats the column, and checks that none is worse.
int expect_no_worse(const char* limit, double GoldenRow::*column) {
  int better = 0;
  for (const GoldenRow& row : kGoldenRows) {
    const SimTable table =
        table_of(golden_recipe(row, std::string(", memory_limit: ") + limit));
    const Simulation run = run_order(table, "capped").simulation;
    EXPECT_LE(run.bubble_rate, row.*column + kRounding) << row_name(row) << " at " << limit;
    EXPECT_TRUE(check_memory(table, run).ok()) << row_name(row) << " at " << limit;
    if (run.bubble_rate < row.*column - kRounding) ++better;
  }
  return better;
}

TEST(GoldenCapped, OnceTheMemory) { expect_no_worse("1", &GoldenRow::h1); }
TEST(GoldenCapped, OneAndAQuarter) { EXPECT_GE(expect_no_worse("1.25", &GoldenRow::cap125), 3); }
TEST(GoldenCapped, OneAndAHalf) { EXPECT_GE(expect_no_worse("1.5", &GoldenRow::cap150), 3); }
TEST(GoldenCapped, TwiceTheMemory) { EXPECT_GE(expect_no_worse("2", &GoldenRow::two), 3); }

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
