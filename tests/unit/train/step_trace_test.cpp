// SPDX-License-Identifier: Apache-2.0
// Where the time of traced steps went, with a clock of the test's own: sums, means, rows.
#include "core/train/step_trace.hpp"

#include <gtest/gtest.h>

#include "core/device/device.hpp"

namespace gradrack {
namespace {

int64_t now = 0;  // NOLINT: read by a function without arguments
int64_t test_clock() { return now; }

/// A plan of tasks of kinds 0, 1, 2, ... with no kernels, on `streams` streams of host memory.
class StepTraceTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Plan> plan(uint32_t streams, size_t tasks) const {
    auto made = std::make_shared<Plan>();
    made->devices = {device_.get()};
    made->table.stages = {"trunk"};
    for (uint32_t s = 0; s < streams; ++s) made->schedule.lanes.push_back({0, s});
    for (size_t t = 0; t < tasks; ++t) {
      Task task;
      task.kind = static_cast<int32_t>(t);
      task.stage = t == 0 ? 0 : -1;
      task.name = "task " + std::to_string(t);
      made->table.tasks.push_back(task);
    }
    return made;
  }

  static void enter(StepTrace& trace, HostPhase phase, int64_t at) {
    now = at;
    trace.enter(phase);
  }
  static StepTimes end(StepTrace& trace, int64_t at) {
    now = at;
    return trace.end();
  }

  /// A step from 1000 to 1120 with a run of two streams from 1020 to 1110.
  StepTimes traced_step(StepTrace& trace, std::vector<TaskTime> tasks) const {
    now = 1000;
    trace.begin(2);
    enter(trace, HostPhase::kPlan, 1010);
    enter(trace, HostPhase::kData, 1011);
    enter(trace, HostPhase::kScalars, 1015);
    enter(trace, HostPhase::kRun, 1016);
    trace.add_run(plan(2, 3), 0, {1020, 1110, std::move(tasks)});
    enter(trace, HostPhase::kRead, 1116);
    enter(trace, HostPhase::kLog, 1118);
    return end(trace, 1120);
  }
  const std::vector<TaskTime> tasks_ = {{0, 0, 1020, 1050}, {1, 0, 1050, 1080}, {2, 1, 1060, 1110}};

 private:
  std::shared_ptr<Device> device_ = make_host_memory();
};

TEST_F(StepTraceTest, PartsAddUpToTheStep) {
  StepTrace trace(2, 1, test_clock);
  const StepTimes times = traced_step(trace, tasks_);
  EXPECT_EQ(times.step, 2);
  EXPECT_EQ(times.wall, 120);
  EXPECT_EQ(times.host, (std::array<int64_t, kHostPhases>{14, 1, 1, 10, 2, 0, 0, 2}));
  EXPECT_EQ(times.kinds, (std::array<double, kTaskKinds>{15, 15, 25, 0, 0, 0}));  // of two streams
  EXPECT_EQ(times.idle, 35);
  EXPECT_EQ(times.idle_by_stream,
            (std::vector<std::pair<std::string, int64_t>>{{"host", 30}, {"host.1", 40}}));
  EXPECT_EQ(times.sum(), 120);
}

TEST_F(StepTraceTest, TasksThatOverlapOrLieOutsideShowInTheSum) {
  StepTrace trace(2, 2, test_clock);
  std::vector<TaskTime> overlap = tasks_;
  overlap[1].start_ns = 1040;
  EXPECT_GT(traced_step(trace, overlap).sum(), 120);
  std::vector<TaskTime> outside = tasks_;
  outside[2].end_ns = 1130;
  EXPECT_GT(traced_step(trace, outside).sum(), 120);
}

TEST_F(StepTraceTest, StreamThatARunDoesNotUseIsIdleInIt) {
  StepTrace trace(1, 1, test_clock);
  now = 0;
  trace.begin(1);
  enter(trace, HostPhase::kRun, 0);
  trace.add_run(plan(2, 3), 0, {0, 50, {{0, 0, 0, 50}, {2, 1, 0, 50}}});
  trace.add_run(plan(1, 3), 1, {50, 100, {{3 - 1, 0, 50, 100}}});
  const StepTimes times = end(trace, 100);
  EXPECT_EQ(times.idle, 25);
  EXPECT_EQ(times.idle_by_stream[1].second, 50);
  EXPECT_EQ(times.sum(), 100);
}

TEST_F(StepTraceTest, TracesTheStepsThatAreAskedFor) {
  StepTrace trace(3, 2, test_clock);
  std::vector<int64_t> traced;
  for (int64_t step = 1; step <= 8; ++step) {
    trace.begin(step);
    if (!trace.on()) continue;
    traced.push_back(end(trace, ++now).step);
    EXPECT_EQ(trace.more(), step == 3);
  }
  EXPECT_EQ(traced, (std::vector<int64_t>{3, 4}));
  StepTrace none;
  none.begin(1);
  EXPECT_FALSE(none.on());
}

TEST_F(StepTraceTest, TimelineHasPhasesAndTasksFromItsOwnZero) {
  StepTrace trace(2, 3, test_clock);
  traced_step(trace, tasks_);
  now = 2000;
  trace.begin(3);  // never ends
  enter(trace, HostPhase::kRun, 2010);
  trace.add_run(plan(2, 3), 0, {2010, 2020, tasks_});
  enter(trace, HostPhase::kRead, 2020);
  trace.stop();
  const Timeline timeline = trace.timeline();
  EXPECT_EQ(timeline.end_ns, 120);
  ASSERT_EQ(timeline.rows.size(), 3u);
  EXPECT_EQ(timeline.rows[0].name, "host phases");
  EXPECT_EQ(timeline.rows[0].spans.size(), 7u);
  EXPECT_EQ(timeline.rows[0].spans.front().start_ns, 0);
  EXPECT_EQ(timeline.rows[0].spans.back().end_ns, 120);
  EXPECT_EQ(timeline.rows[2].name, "host.1");
  const TimelineSpan& first = timeline.rows[1].spans.at(0);
  EXPECT_EQ(first.start_ns, 20);
  EXPECT_EQ(first.end_ns, 50);
  EXPECT_EQ(first.name, "task 0");
  EXPECT_EQ(first.stage, "trunk");
  EXPECT_EQ(first.step, 2);
  EXPECT_EQ(first.microbatch, 0);
}

TEST_F(StepTraceTest, RecordsAndTextNameEveryPart) {
  StepTrace trace(2, 1, test_clock);
  const StepTimes times = traced_step(trace, tasks_);
  double sum = 0;
  for (const auto& [name, ms] : metric_values(times)) {
    if (name == "time/step_ms") {
      EXPECT_DOUBLE_EQ(ms, 120e-6);
    }
    if (name == "time/idle_ms/host.1") {
      EXPECT_DOUBLE_EQ(ms, 40e-6);
    }
    if (name != "time/step_ms" && name.find("idle_ms/") == std::string::npos) sum += ms;
  }
  EXPECT_DOUBLE_EQ(sum, 120e-6);
  const std::string text = text_of(times);
  for (const char* part : {"step 2: ", "forward ", "weight_gradient ", "idle ", "data ",
                           "measuring ", "idle by stream: host 0.000, host.1 0.000"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace gradrack
