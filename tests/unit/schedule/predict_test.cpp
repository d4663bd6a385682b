// SPDX-License-Identifier: Apache-2.0
// Predictions of small tables, against figures worked out by hand.
#include "core/schedule/predict.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

/// 0 feeds 1 and 2, both feed 3.
TaskTable diamond(int64_t wait_ns = 0) {
  TaskTable table;
  const std::vector<std::vector<uint32_t>> deps = {{}, {0}, {0}, {1, 2}};
  const std::vector<int64_t> costs = {10, 20, 30, 5};
  for (size_t t = 0; t < deps.size(); ++t) {
    Task task;
    task.deps = deps[t];
    task.cost_ns = costs[t];
    table.tasks.push_back(task);
  }
  table.wait_ns = wait_ns;
  return table;
}

Schedule on(const TaskTable& table, const std::vector<uint32_t>& order,
            const std::vector<uint32_t>& stream) {
  auto made = schedule_from(table, order, stream, 4);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

TEST(Predict, OneStreamTakesTheSumOfCosts) {
  const TaskTable table = diamond(7);
  const Prediction got = predict(table, program_order(table));
  EXPECT_EQ(got.makespan_ns, 65);
  EXPECT_EQ(got.sequential_ns, 65);
  EXPECT_EQ(got.busy_ns, std::vector<int64_t>{65});
  EXPECT_EQ(got.tasks[3].start_ns, 60);
  EXPECT_EQ(got.tasks[3].end_ns, 65);
}

TEST(Predict, StreamsOverlapAndWaitsCost) {
  const TaskTable table = diamond(7);
  const Prediction got = predict(table, on(table, {0, 1, 2, 3}, {0, 1, 0, 0}));
  EXPECT_EQ(got.tasks[1].start_ns, 17);  // 10, and a wait
  EXPECT_EQ(got.tasks[2].start_ns, 10);
  EXPECT_EQ(got.tasks[3].start_ns, 44);  // 37 on the other stream, and a wait
  EXPECT_EQ(got.makespan_ns, 49);
  EXPECT_EQ(got.sequential_ns, 65);
  EXPECT_EQ(got.busy_ns, (std::vector<int64_t>{45, 20}));
}

TEST(Predict, AWaitForWhatEndedLongAgoCostsNothing) {
  const TaskTable table = diamond(7);
  const Prediction got = predict(table, on(table, {0, 1, 2, 3}, {0, 0, 1, 1}));
  EXPECT_EQ(got.tasks[2].start_ns, 17);
  EXPECT_EQ(got.tasks[3].start_ns, 47);  // its own stream ends at 47, the other at 30
}

TEST(Predict, DevicesRunBesideEachOtherInProgramOrderToo) {
  TaskTable table = diamond(3);
  table.tasks[1].device = 1;
  EXPECT_EQ(predict_sequential(table), 45);
  EXPECT_EQ(predict(table, program_order(table)).makespan_ns, 45);
}

TEST(Predict, TheLongestChainCountsCosts) { EXPECT_EQ(longest_chain_ns(diamond()), 45); }

TEST(Predict, PeakFollowsTheStarts) {
  TaskTable table = diamond();
  table.buffers = {{100, false, {0, 1, 2}}, {50, false, {1, 3}}, {60, false, {2, 3}}};
  EXPECT_EQ(predict(table, program_order(table)).peak_bytes, 210);
  table.buffers = {{100, false, {0, 1}}, {50, false, {1, 3}}, {60, false, {2, 3}}};
  EXPECT_EQ(predict(table, program_order(table)).peak_bytes, 150);
  EXPECT_EQ(predict(table, on(table, {0, 1, 2, 3}, {0, 1, 0, 0})).peak_bytes, 210);
}

TEST(Predict, BytesOfOneTaskGoToTheNextOfItsStream) {
  TaskTable table = diamond();
  table.buffers = {{100, false, {1}}, {100, false, {2}}};
  EXPECT_EQ(predict(table, program_order(table)).peak_bytes, 100);
  EXPECT_EQ(predict(table, on(table, {0, 1, 2, 3}, {0, 1, 0, 0})).peak_bytes, 200);
}

TEST(Predict, KeptBytesStayAndBytesOfTasksWithoutCostCount) {
  TaskTable table = diamond();
  table.tasks[1].cost_ns = 0;
  table.buffers = {{100, true, {0}}, {70, false, {1}}, {60, false, {3}}};
  EXPECT_EQ(predict(table, program_order(table)).peak_bytes, 170);
}

TEST(Predict, SchedulesCarryTheirFigures) {
  const TaskTable table = diamond();
  ScheduleRequest request;
  request.table = &table;
  const auto made = make_schedule(request);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->predicted_ns, 65);
  EXPECT_EQ(made->sequential_ns, 65);
}

}  // namespace
}  // namespace gradrack
