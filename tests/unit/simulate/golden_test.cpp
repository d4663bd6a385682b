// SPDX-License-Identifier: Apache-2.0
// Published schedules on published tables give the published bubbles.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gradrack
