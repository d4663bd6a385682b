// SPDX-License-Identifier: Apache-2.0
// Pipelines of unit times: BERT-24, layers on devices, what does not fit an order.
#include <gtest/gtest.h>

#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

constexpr const char* kBert = "pipeline: {stages: 4, layers: 24, microbatches: 4";

double units(const std::string& recipe, const std::string& order) {
  return static_cast<double>(run_order(table_of(recipe), order).simulation.makespan_ns) / 1e6;
}

TEST(PipelineOrders, Bert24) {
  EXPECT_EQ(units(std::string(kBert) + ", backward: fused}", "gpipe"), 126);
  EXPECT_EQ(units(std::string(kBert) + "}", "fast_forward"), 90);
  EXPECT_EQ(units(std::string(kBert) + ", allocation: modulo}", "fast_forward"), 75);
}

TEST(PipelineOrders, ModuloSendsMore) {
  const auto transfers = [](const std::string& recipe) {
    const SimTable table = table_of(recipe);
    int64_t count = 0;
    for (const LinkUse& link : run_order(table, "fast_forward").simulation.links) {
      count += link.transfers;
    }
    return count;
  };
  EXPECT_EQ(transfers(std::string(kBert) + "}"), 2 * 3 * 4);
  EXPECT_EQ(transfers(std::string(kBert) + ", allocation: modulo}"), 2 * 23 * 4);
}

TEST(PipelineOrders, GpipeHoldsAllMicrobatches) {
  const SimTable table = table_of("pipeline: {stages: 3, microbatches: 5, forward_bytes: 10}");
  EXPECT_EQ(run_order(table, "gpipe").simulation.devices[0].peak_bytes, 50);
  EXPECT_EQ(run_order(table, "1f1b").simulation.devices[0].peak_bytes, 30);
}

TEST(PipelineOrders, OneDeviceHasNoBubble) {
  for (const char* order : {"gpipe", "1f1b", "zb_h1", "zb_h2", "capped", "fast_forward"}) {
    const SimTable table = table_of("pipeline: {stages: 1, microbatches: 3}");
    const Simulation run = run_order(table, order).simulation;
    EXPECT_EQ(run.makespan_ns, 9000000) << order;
    EXPECT_EQ(run.bubble_rate, 0) << order;
  }
}

TEST(PipelineOrders, CappedWantsDWApart) {
  const auto answer =
      ask_order(table_of("pipeline: {stages: 2, microbatches: 2, backward: fused}"), "capped");
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("pipeline.backward=split"), std::string::npos)
      << answer.status().message();
}

TEST(PipelineOrders, AStepOfDataParallelIsNoPipeline) {
  const auto answer = ask_order(table_of("data_parallel: {}"), "zb_h1");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(answer.status().message().find("has microbatch -1"), std::string::npos)
      << answer.status().message();
}

TEST(PipelineOrders, AnUnknownOrderNamesItsNeighbour) {
  const auto order = find_order("zb_h3");
  ASSERT_FALSE(order.ok());
  EXPECT_NE(order.status().message().find("did you mean 'zb_h"), std::string::npos)
      << order.status().message();
}

}  // namespace
}  // namespace gradrack
