// SPDX-License-Identifier: Apache-2.0
// Timed runs: the bytes of plain ones, times that the schedule allows, clocks that are not the
// host's, and backends that cannot.
#include "core/exec/timeline.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/exec/executor.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;

/// A table of the toy backend whose timing a test changes; one at a time.
struct Wrapped {
  static inline gr_backend_t table = {};
  static inline const gr_backend_t* right = nullptr;
  static inline const gr_timing_t* right_timing = nullptr;
  static inline gr_timing_t timing = {};
  static inline bool offered = true;
  static inline int64_t ahead_ns = 0;

  static const gr_backend_t* wrap(const gr_backend_t* from) {
    table = *from;
    right = from;
    right_timing = static_cast<const gr_timing_t*>(from->get_extension(from->self, GR_EXT_TIMING));
    timing = *right_timing;
    offered = true;
    ahead_ns = 0;
    table.get_extension = [](void* self, const char* id) -> const void* {
      if (std::strcmp(id, GR_EXT_TIMING) != 0) return right->get_extension(self, id);
      return offered ? &timing : nullptr;
    };
    timing.read = [](void* self, gr_mark_t* mark, int64_t* ns, gr_error_t* err) {
      const int32_t code = right_timing->read(self, mark, ns, err);
      *ns += ahead_ns;
      return code;
    };
    return &table;
  }
};

std::vector<float> numbers(float scale) {
  std::vector<float> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * float(i) * scale;
  return x;
}

/// Every task once, none of them outside the run, one at a time in its lane, and after what it
/// needs.
void expect_possible(const Plan& plan, const StepTimeline& timeline) {
  ASSERT_EQ(timeline.tasks.size(), plan.tasks.size());
  std::vector<const TaskTime*> of(plan.tasks.size(), nullptr);
  std::vector<int64_t> lane_end(plan.schedule.lanes.size(), timeline.start_ns);
  int64_t last_start = timeline.start_ns;
  for (const TaskTime& time : timeline.tasks) {
    ASSERT_EQ(of[time.task], nullptr);
    of[time.task] = &time;
    EXPECT_EQ(time.lane, plan.schedule.lane[time.task]);
    EXPECT_LE(last_start, time.start_ns) << "in order of start";
    last_start = time.start_ns;
    EXPECT_LE(lane_end[time.lane], time.start_ns);
    EXPECT_LE(time.start_ns, time.end_ns);
    lane_end[time.lane] = time.end_ns;
    EXPECT_LE(time.end_ns, timeline.end_ns);
  }
  for (uint32_t task = 0; task < plan.tasks.size(); ++task) {
    for (const uint32_t dep : plan.table.tasks[task].deps) {
      EXPECT_LE(of[dep]->end_ns, of[task]->start_ns) << plan.table.tasks[task].name;
    }
  }
}

TEST(Timeline, ATimedRunGivesTheBytesOfARun) {
  const Graph graph = toy::wide_graph();
  for (const bool threaded : {false, true}) {
    Backend backend({.threaded = threaded});
    ToyRun plain(graph, backend);
    for (uint32_t seed = 0; seed < 8; ++seed) {
      toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
      ToyRun run(graph, backend, {.scheduler_name = "random", .scheduler = scheduler.table()});
      ToyRun timed(graph, backend, run.plan);
      StepTimeline timeline;
      for (int step = 0; step < 4; ++step) {
        run.set_input("x", numbers(float(step)));
        timed.set_input("x", numbers(float(step)));
        run.step();
        // Timed and untimed runs of one executor may follow each other.
        const Status status =
            step == 2 ? timed.executor->run() : timed.executor->run_timed(&timeline);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_possible(*timed.plan, timeline);
        EXPECT_EQ(timed.hash(), run.hash()) << "seed " << seed;
      }
    }
  }
}

TEST(Timeline, AnotherClockIsBroughtToTheHosts) {
  const Graph graph = toy::wide_graph();
  Backend backend({.threaded = true, .wrap = Wrapped::wrap});
  ToyRun run(graph, backend);
  Wrapped::timing.flags = 0;
  constexpr int64_t kYear = INT64_C(31'536'000'000'000'000);
  for (const int64_t ahead : {kYear, -kYear}) {
    Wrapped::ahead_ns = ahead;
    StepTimeline timeline;
    ASSERT_TRUE(run.executor->run_timed(&timeline).ok());
    constexpr int64_t kSlack = INT64_C(60'000'000'000);  // against a year
    for (const TaskTime& time : timeline.tasks) {
      EXPECT_GT(time.start_ns, timeline.start_ns - kSlack);
      EXPECT_LT(time.end_ns, timeline.end_ns + kSlack);
    }
  }
}

TEST(Timeline, ABackendWithoutTimingIsNamedAndNothingRuns) {
  Builder b;
  b.output("y", b.op("Neg", {b.input("x", {2})}));
  Backend backend({.name = "mute", .wrap = Wrapped::wrap});
  ToyRun run(b.graph, backend);
  run.set_input("x", {1, 2});
  run.step();
  run.set_input("x", {3, 4});
  Wrapped::offered = false;
  StepTimeline timeline;
  const Status status = run.executor->run_timed(&timeline);
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_EQ(status.message(),
            "backend mute does not offer gr.timing/1, so its tasks cannot be timed");
  EXPECT_EQ(run.output("y"), (std::vector<float>{-1, -2}));
  run.step();
  EXPECT_EQ(run.output("y"), (std::vector<float>{-3, -4}));
}

TEST(Timeline, AFailingTaskIsNamedAndUndone) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId p = b.parameter("p", {2}, 1);
  b.write(p, b.op("Move", {p, x}));
  b.output("y", b.op("Neg", {b.op("Twice", {x})}));
  Backend backend({.threaded = true});
  ToyRun run(b.graph, backend, {.undo = true});
  run.set_input("x", {1, 2});
  StepTimeline timeline;
  for (int64_t failing = 1; failing <= 3; ++failing) {
    toy::fail_kernel(failing);
    const Status status = run.executor->run_timed(&timeline);
    toy::fail_kernel(0);
    EXPECT_EQ(status.code(), GR_OUT_OF_RANGE) << failing;
    EXPECT_EQ(run.stored("p"), (std::vector<float>{1, 1})) << failing;
  }
  ASSERT_TRUE(run.executor->run_timed(&timeline).ok());
  EXPECT_EQ(run.stored("p"), (std::vector<float>{0, -1}));
}

TEST(Timeline, ATaskThatEndsBeforeItBeginsIsAFaultOfTheBackend) {
  Builder b;
  b.output("y", b.op("Neg", {b.input("x", {2})}));
  Backend backend({.name = "odd", .wrap = Wrapped::wrap});
  Wrapped::timing.read = [](void*, gr_mark_t*, int64_t* ns, gr_error_t*) -> int32_t {
    static int64_t clock = 0;
    *ns = --clock;
    return GR_OK;
  };
  ToyRun run(b.graph, backend);
  StepTimeline timeline;
  const Status status = run.executor->run_timed(&timeline);
  EXPECT_EQ(status.code(), GR_INTERNAL);
  EXPECT_EQ(status.message(), "backend odd: gr.timing/1: Neg (node 0) ended before it began");
}

}  // namespace
}  // namespace gradrack
