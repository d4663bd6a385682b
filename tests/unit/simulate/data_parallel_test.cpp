// SPDX-License-Identifier: Apache-2.0
// Data parallel tables: reverse-first-k against what is published and against the bounds.
#include <gtest/gtest.h>

#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

SimTable resnet(const std::string& network, const std::string& ratio,
                const std::string& policy = "fifo") {
  return table_of("data_parallel: {network: " + network + ", ratio: " + ratio +
                  ", policy: " + policy + "}");
}

double time_of(const SimTable& table, const std::string& order, const std::string& set = "") {
  return static_cast<double>(run_order(table, order, set).simulation.makespan_ns) / 1e8;
}

TEST(DataParallel, ResNet50WithFifo) {
  EXPECT_NEAR(time_of(resnet("resnet50", "0.75"), "program"), 1.084, 5e-4);
  EXPECT_NEAR(time_of(resnet("resnet50", "1"), "program"), 1.334, 5e-4);
  EXPECT_NEAR(time_of(resnet("resnet50", "0.75"), "reverse_first_k"), .990, 5e-4);
  EXPECT_NEAR(time_of(resnet("resnet50", "1"), "reverse_first_k"), 1.048, 5e-4);
  EXPECT_NEAR(time_of(resnet("resnet50", "1.25"), "reverse_first_k"), 1.286, 5e-4);
}

TEST(DataParallel, ResNet101WithFifo) {
  EXPECT_NEAR(time_of(resnet("resnet101", "1"), "program"), 1.333, 5e-4);
  EXPECT_NEAR(time_of(resnet("resnet101", "1"), "reverse_first_k"), 1.056, 5e-4);
}

TEST(DataParallel, HoldingTheLastLayersGoesFurther) {
  EXPECT_LT(time_of(resnet("resnet50", "1"), "reverse_first_k", "hold_last: true"), 1.006);
  EXPECT_LT(time_of(resnet("resnet101", "1"), "reverse_first_k", "hold_last: true"), 1.011);
  EXPECT_LT(time_of(resnet("resnet101", "1.25"), "reverse_first_k", "hold_last: true"), 1.254);
}

TEST(DataParallel, NeverSlowerThanConventionalNorBelowTheBound) {
  for (const char* network : {"resnet50", "resnet101"}) {
    for (const char* policy : {"fifo", "priority", "preemptive"}) {
      for (const char* ratio : {"0", "0.25", "0.75", "1", "1.25", "2"}) {
        const SimTable table = resnet(network, ratio, policy);
        const Simulation conventional = run_order(table, "program").simulation;
        const Simulation ours = run_order(table, "reverse_first_k").simulation;
        EXPECT_LE(ours.makespan_ns, conventional.makespan_ns) << network << policy << ratio;
        EXPECT_GE(ours.makespan_ns, lower_bound_ns(table)) << network << policy << ratio;
        EXPECT_EQ(ours.bound_ns, lower_bound_ns(table));
      }
    }
  }
}

TEST(DataParallel, WithAPreemptiveLinkASmallKIsChosenAndSaysWhy) {
  const OrderRun run = run_order(resnet("resnet50", "1", "preemptive"), "reverse_first_k");
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("k = 0 of 54"), std::string::npos) << run.notes[0];
  EXPECT_NE(run.notes[0].find("little to gain"), std::string::npos) << run.notes[0];
}

TEST(DataParallel, AMemoryLimitBoundsTheKeptGradients) {
  SimTable table = resnet("resnet50", "1");
  const Simulation free = run_order(table, "reverse_first_k").simulation;
  const Simulation least = run_order(table, "program").simulation;
  ASSERT_LT(least.devices[0].peak_bytes, free.devices[0].peak_bytes);
  table.devices[0].memory_limit = (least.devices[0].peak_bytes + free.devices[0].peak_bytes) / 2;
  const Simulation capped = run_order(table, "reverse_first_k").simulation;
  EXPECT_LE(capped.devices[0].peak_bytes, table.devices[0].memory_limit);
  EXPECT_LE(capped.makespan_ns, least.makespan_ns);
  EXPECT_GE(capped.makespan_ns, free.makespan_ns);
}

TEST(DataParallel, ALimitThatNothingKeepsIsRefusedWithTheLeast) {
  SimTable table = resnet("resnet50", "1");
  const int64_t least = run_order(table, "program").simulation.devices[0].peak_bytes;
  table.devices[0].memory_limit = least - 1;
  const auto answer = ask_order(table, "reverse_first_k");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find(std::to_string(least)), std::string::npos)
      << answer.status().message();
}

TEST(DataParallel, AChosenKIsTaken) {
  const SimTable table = resnet("resnet50", "1");
  const double at_46 = time_of(table, "reverse_first_k", "k: 46");
  EXPECT_NEAR(at_46, 1.048, 5e-4);
  EXPECT_GT(time_of(table, "reverse_first_k", "k: 20"), at_46);
  const auto answer = ask_order(table, "reverse_first_k", "k: 55");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("there are 54"), std::string::npos);
}

TEST(DataParallel, APipelineIsNoStep) {
  const SimTable table = table_of("pipeline: {stages: 2, microbatches: 2}");
  const auto answer = ask_order(table, "reverse_first_k");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("2 devices"), std::string::npos)
      << answer.status().message();
}

}  // namespace
}  // namespace gradrack
