// SPDX-License-Identifier: Apache-2.0
// Where a scheduler's answer cannot be faster, program order is taken and the reason given.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/schedule.hpp"
#include "tests/support/toy_scheduler.hpp"
#include "tests/unit/schedule/tables.hpp"

namespace gradrack {
namespace {

using testing::table_of;

/// 0 feeds 1 and 2, both feed 3; 4 ms in program order, 3 ms on two streams.
TaskTable diamond() {
  return table_of({{}, {0}, {0}, {1, 2}}, {1000000, 1000000, 1000000, 1000000});
}

/// Program order; every odd task on stream 1 where there is one.
toy::Scheduler alternating(uint32_t streams) {
  return toy::Scheduler(streams,
                        [](const gr_schedule_request_t& request, uint32_t* order, uint32_t* stream,
                           gr_error_t*) -> int32_t {
                          for (uint32_t t = 0; t < request.task_count; ++t) {
                            order[t] = t;
                            stream[t] = t % 2 % request.streams;
                          }
                          return GR_OK;
                        });
}

struct Case {
  uint32_t max_streams = 8;
  bool auto_off = true;
  std::string streams_option = {};
  std::string one_stream = {};
};

Schedule ask(toy::Scheduler scheduler, const TaskTable& table, const Case& c = {}) {
  ScheduleRequest request;
  request.table = &table;
  request.scheduler_name = "under test";
  request.scheduler = scheduler.table();
  request.max_streams = c.max_streams;
  request.auto_off = c.auto_off;
  request.streams_option = c.streams_option;
  request.one_stream = c.one_stream;
  auto made = make_schedule(request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

void expect_program_order(const Schedule& made, const std::string& reason) {
  EXPECT_EQ(made.fallback_reason, "scheduler under test: " + reason);
  EXPECT_EQ(made.scheduler, "program order");
  EXPECT_TRUE(is_program_order(made));
  EXPECT_EQ(made.lanes.size(), 1u);
  EXPECT_EQ(made.predicted_ns, made.sequential_ns);
}

TEST(Fallback, NoneWhereTheAnswerIsFaster) {
  const Schedule made = ask(alternating(2), diamond());
  EXPECT_EQ(made.fallback_reason, "");
  EXPECT_EQ(made.lanes.size(), 2u);
  EXPECT_EQ(made.predicted_ns, 3000000);
  EXPECT_EQ(made.sequential_ns, 4000000);
}

TEST(Fallback, TheDeviceHasOneStream) {
  expect_program_order(ask(alternating(2), diamond(), {.max_streams = 1}),
                       "the devices have one stream");
  expect_program_order(
      ask(alternating(2), diamond(),
          {.max_streams = 1, .one_stream = "device toy has one stream: see its option 'lanes'"}),
      "device toy has one stream: see its option 'lanes'");
}

TEST(Fallback, TheSchedulerAsksForOneStream) {
  expect_program_order(ask(alternating(1), diamond(), {.streams_option = "streams"}),
                       "it asks for one stream: set its option 'streams' to 2 or more");
}

toy::Scheduler one_stream_backwards() {
  return toy::Scheduler(
      1,
      [](const gr_schedule_request_t&, uint32_t* order, uint32_t* stream, gr_error_t*) -> int32_t {
        const uint32_t swapped[] = {0, 2, 1, 3};
        std::copy(swapped, swapped + 4, order);
        std::fill(stream, stream + 4, 0u);
        return GR_OK;
      });
}

TEST(Fallback, AnotherOrderOnOneStreamIsNotFaster) {
  expect_program_order(ask(one_stream_backwards(), diamond()),
                       "it asks for one stream, where no order is faster than another");
}

TEST(Fallback, ASchedulerOfProgramOrderGetsWhatItWants) {
  const Schedule made = ask(alternating(1), diamond());
  EXPECT_EQ(made.fallback_reason, "");
  EXPECT_EQ(made.scheduler, "under test");
  EXPECT_TRUE(is_program_order(made));
}

TEST(Fallback, NothingCanRunBesideTheLongestChain) {
  const TaskTable chain = table_of({{}, {0}, {1}, {0}}, {50000000, 30000000, 20000000, 1000});
  expect_program_order(
      ask(alternating(2), chain),
      "fewer than two independent stages: the longest chain of tasks that need one another takes "
      "100.000 ms of 100.001 ms, so next to nothing can run beside it");
}

TEST(Fallback, NoGainIsPredicted) {
  TaskTable table = diamond();
  table.wait_ns = 1000000;  // a wait eats what the second stream saves
  expect_program_order(ask(alternating(2), table),
                       "no gain predicted: its order takes 4.000 ms, program order on one stream "
                       "4.000 ms");
  table.wait_ns = 900000;  // 3.9 ms: 2.5 %
  EXPECT_EQ(ask(alternating(2), table).fallback_reason, "");
  table.wait_ns = 930000;  // 3.93 ms: 1.75 %
  EXPECT_NE(ask(alternating(2), table).fallback_reason, "");
}

TEST(Fallback, WithoutAutoOffEveryLegalAnswerIsTaken) {
  TaskTable table = diamond();
  table.wait_ns = 9000000;
  EXPECT_EQ(ask(alternating(2), table, {.auto_off = false}).lanes.size(), 2u);
  EXPECT_EQ(ask(one_stream_backwards(), table, {.auto_off = false}).order,
            (std::vector<uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(ask(alternating(2), table, {.max_streams = 1, .auto_off = false}).scheduler,
            "under test");
}

}  // namespace
}  // namespace gradrack
