// SPDX-License-Identifier: Apache-2.0
// BenchReport: spreads, sums by operator, shares of the roof.
#include "core/train/bench_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gradrack {
namespace {

Plan two_products_and_a_copy() {
  Plan plan;
  const auto add = [&](int32_t kind, const char* name, int64_t flops, int64_t bytes) {
    Task task;
    task.kind = kind;
    task.name = name;
    task.flops = flops;
    task.bytes_moved = bytes;
    plan.table.tasks.push_back(task);
  };
  add(GR_KIND_FORWARD, "MatMul in head (node 1)", 4000, 100);
  add(GR_KIND_WEIGHT_GRADIENT, "MatMul and 2 more in head (node 5)", 8000, 100);
  add(GR_KIND_COPY, "copy of 'x' to gpu", 0, 600);
  return plan;
}

BenchReport measured() {
  BenchReport report;
  StepTimeline timeline;
  timeline.tasks = {{0, 0, 100, 140}, {1, 0, 140, 200}, {2, 0, 200, 300}};
  const Plan plan = two_products_and_a_copy();
  for (report.timed_steps = 0; report.timed_steps < 2; ++report.timed_steps) {
    add_times(plan, timeline, &report);
  }
  report.peaks = {200, 10};
  finish_times(&report);
  return report;
}

TEST(BenchReport, SpreadIsOfTheSortedNumbers) {
  const Spread spread = spread_of({9, 1, 3, 7, 5});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.low, 3);
  EXPECT_EQ(spread.high, 7);
  EXPECT_EQ(spread.least, 1);
  EXPECT_EQ(spread_of({}).median, 0);
}

TEST(BenchReport, TasksOfAnOperatorAreAddedUpAStep) {
  const BenchReport report = measured();
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].op, "MatMul");
  EXPECT_EQ(report.kernels[0].tasks, 2);
  EXPECT_EQ(report.kernels[0].ns, 100);
  EXPECT_EQ(report.kernels[0].flops, 12000);
  EXPECT_EQ(report.kernels[1].op, "copy");
  EXPECT_EQ(report.kind_ns[GR_KIND_FORWARD], 40);
  EXPECT_EQ(report.kind_ns[GR_KIND_WEIGHT_GRADIENT], 60);
}

TEST(BenchReport, RoofIsTheSlowerOfOperationsAndBytes) {
  const BenchReport report = measured();
  EXPECT_DOUBLE_EQ(roof_share(report.kernels[0], report.peaks), 0.6);  // 12,000 / 200 of 100 ns
  EXPECT_DOUBLE_EQ(roof_share(report.kernels[1], report.peaks), 0.6);  // 600 / 10 of 100 ns
  EXPECT_EQ(roof_share(report.kernels[0], {}), 0);
}

TEST(BenchReport, TextAndJsonSayTheSame) {
  const BenchReport report = measured();
  const auto json = nlohmann::json::parse(bench_json(report));
  EXPECT_EQ(json["kernels"][0]["operator"], "MatMul");
  EXPECT_EQ(json["kernels"][0]["gflops"], 120.0);
  EXPECT_EQ(json["peaks"]["gbytes"], 10.0);
  const std::string text = bench_text(report);
  EXPECT_NE(text.find("one stream: 200.0 GF/s"), std::string::npos) << text;
  EXPECT_NE(text.find("forward 0.000 ms (20 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("MatMul "), std::string::npos) << text;
}

}  // namespace
}  // namespace gradrack
