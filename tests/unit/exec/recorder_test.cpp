// SPDX-License-Identifier: Apache-2.0
// Recorded runs: the bytes of plain ones on any schedule, no allocation, and what is left out of a
// recording by backends that cannot, with the reason.
#include "core/exec/recorder.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/exec/executor.hpp"
#include "tests/support/count_allocations.hpp"
#include "tests/support/emulated_device.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;

ExecutorOptions recording(bool record) {
  ExecutorOptions options;
  options.record = record;
  return options;
}

/// A table of the toy backend whose extension is `change`d; one at a time.
struct Limited {
  static inline gr_backend_t table = {};
  static inline gr_capture_t capture = {};
  static inline const gr_capture_t* inner = nullptr;
  static inline int32_t (*inner_launch)(void*, gr_kernel_t*, const DLTensor* const*,
                                        DLTensor* const*, const DLTensor*, gr_stream_t*,
                                        gr_error_t*) = nullptr;
  static inline int begun = 0;
  static inline int launches = 0;   // since the last reset
  static inline int refuse_at = 0;  // within a recording: this launch of it; 0: none

  static const void* extension(void*, const char* id) {
    return std::strcmp(id, GR_EXT_CAPTURE) == 0 ? &capture : nullptr;
  }
  static const gr_backend_t* wrap(const gr_backend_t* from, uint32_t flags) {
    table = *from;
    inner = static_cast<const gr_capture_t*>(from->get_extension(from->self, GR_EXT_CAPTURE));
    capture = *inner;
    capture.flags = flags;
    table.get_extension = extension;
    begun = launches = refuse_at = 0;
    inner_launch = from->launch;
    capture.begin = [](void* self, gr_stream_t* const* streams, uint32_t count, gr_error_t* err) {
      ++begun;
      launches = 0;
      if (count > 1 && (capture.flags & GR_CAPTURE_EVENTS) == 0) {
        return gr_fail(err, GR_INVALID_ARGUMENT, "begin", "more streams than the flags allow");
      }
      return inner->begin(self, streams, count, err);
    };
    table.launch = [](void* self, gr_kernel_t* kernel, const DLTensor* const* in,
                      DLTensor* const* out, const DLTensor* workspace, gr_stream_t* stream,
                      gr_error_t* err) {
      if (++launches == refuse_at) return gr_fail(err, GR_UNSUPPORTED, "launch", "not this one");
      return inner_launch(self, kernel, in, out, workspace, stream, err);
    };
    return &table;
  }
};

void expect_the_bytes_of_plain_runs(bool threaded, uint32_t flags) {
  const Graph graph = toy::wide_graph();
  Backend plain_backend;
  const uint64_t expected =
      ToyRun(graph, plain_backend, PlanRequest(), recording(false)).hash_after_steps();
  Backend backend({.threaded = threaded,
                   .wrap = [&](const gr_backend_t* table) { return Limited::wrap(table, flags); }});
  for (uint32_t seed = 0; seed < 24; ++seed) {
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    ToyRun run(graph, backend, {.scheduler_name = "random", .scheduler = scheduler.table()});
    EXPECT_EQ(run.executor->recorded_tasks(), run.plan->tasks.size());
    EXPECT_EQ(run.executor->notes(), std::vector<std::string>());
    EXPECT_EQ(run.hash_after_steps(), expected) << "seed " << seed;
  }
}

TEST(Recorder, ReplaysGiveTheBytesOfPlainRunsInline) {
  expect_the_bytes_of_plain_runs(false, GR_CAPTURE_EVENTS);
}
TEST(Recorder, ReplaysGiveTheBytesOfPlainRunsOnThreads) {
  expect_the_bytes_of_plain_runs(true, GR_CAPTURE_EVENTS);
}
TEST(Recorder, ReplaysWithoutEventsGiveTheBytesOfPlainRuns) {
  expect_the_bytes_of_plain_runs(true, 0);
}

TEST(Recorder, MakesOneRecordingOfAStepWhereEventsAreRecorded) {
  const Graph graph = toy::wide_graph();
  Backend backend(
      {.wrap = [&](const gr_backend_t* table) { return Limited::wrap(table, GR_CAPTURE_EVENTS); }});
  toy::Scheduler scheduler = toy::Scheduler::random(4, 11);
  ToyRun run(graph, backend, {.scheduler = scheduler.table()});
  ASSERT_GT(run.plan->schedule.waits.size(), 5u);
  EXPECT_EQ(Limited::begun, 1);
}

TEST(Recorder, MixesDevicesThatRecordWithOnesThatDoNot) {
  const Graph graph = toy::wide_graph();
  Backend plain;
  const uint64_t expected =
      ToyRun(graph, plain, PlanRequest(), recording(false)).hash_after_steps();
  const std::vector<std::string> all = {"Add",    "Mul", "Neg",     "Twice",
                                        "Halves", "Sum", "Product", "Move"};
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const int32_t memory = seed % 2 == 0 ? GR_MEMORY_DEVICE : GR_MEMORY_HOST;
    Backend first({.name = "first",
                   .refused = emulated::draw(all, 40, seed),
                   .threaded = seed % 3 != 0,
                   .memory = memory});
    Backend second({.name = "second", .threaded = true, .wrap = [](const gr_backend_t* table) {
                      Limited::wrap(table, 0);
                      Limited::table.get_extension = nullptr;
                      return static_cast<const gr_backend_t*>(&Limited::table);
                    }});
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    ToyRun run(graph, first, {.devices = {second.device()}, .scheduler = scheduler.table()});
    ASSERT_EQ(run.executor->notes().size(), 1u);
    EXPECT_EQ(run.executor->notes()[0],
              "backend second: its tasks are launched one by one in every step: it does not offer "
              "gr.capture/1");
    EXPECT_GT(run.executor->recorded_tasks(), 0u);
    EXPECT_LT(run.executor->recorded_tasks(), run.plan->tasks.size());
    EXPECT_EQ(run.hash_after_steps(), expected) << "seed " << seed;
  }
}

TEST(Recorder, LaunchesByItselfWhatABackendCannotRecord) {
  const Graph graph = toy::wide_graph();
  Backend plain;
  const uint64_t expected =
      ToyRun(graph, plain, PlanRequest(), recording(false)).hash_after_steps();
  Backend backend({.threaded = true, .wrap = [](const gr_backend_t* table) {
                     Limited::wrap(table, GR_CAPTURE_EVENTS);
                     Limited::refuse_at = 9;
                     return static_cast<const gr_backend_t*>(&Limited::table);
                   }});
  toy::Scheduler scheduler = toy::Scheduler::random(3, 5);
  ToyRun run(graph, backend, {.scheduler = scheduler.table()});
  Limited::refuse_at = 0;
  const size_t tasks = run.plan->tasks.size();
  EXPECT_LT(run.executor->recorded_tasks(), tasks);
  ASSERT_EQ(run.executor->notes().size(), 1u);
  EXPECT_NE(run.executor->notes()[0].find("cannot be recorded: "), std::string::npos);
  EXPECT_NE(run.executor->notes()[0].find("not this one"), std::string::npos);
  EXPECT_EQ(run.hash_after_steps(), expected);
}

TEST(Recorder, EndsTheSetUpOnAnyOtherError) {
  const Graph graph = toy::wide_graph();
  Backend backend({.wrap = [](const gr_backend_t* table) {
    Limited::wrap(table, GR_CAPTURE_EVENTS);
    Limited::capture.end = [](void*, gr_stream_t*, gr_recording_t**, gr_error_t* err) {
      return gr_fail(err, GR_OUT_OF_MEMORY, "end", "no room for it");
    };
    return static_cast<const gr_backend_t*>(&Limited::table);
  }});
  const auto plan = toy::planned(graph, backend);
  Store store(backend.device());
  ASSERT_TRUE(store.declare_sources(graph, 1).ok() && store.allocate().ok());
  const Status status = Executor::make(plan, &store).status();
  EXPECT_EQ(status.code(), GR_OUT_OF_MEMORY);
  EXPECT_EQ(status.message(), "backend toy: recording a step: end: no room for it");
}

TEST(Recorder, NamesTheTaskThatFailsInAReplay) {
  Builder b;
  const ValueId x = b.input("x", {3});
  b.output("y", b.op("Neg", {b.op("Fail", {b.op("Twice", {x})})}));
  for (const bool threaded : {false, true}) {
    Backend backend({.threaded = threaded});
    toy::Scheduler scheduler = toy::Scheduler::random(3, 3);
    ToyRun run(b.graph, backend, {.scheduler = scheduler.table()});
    ASSERT_EQ(run.executor->recorded_tasks(), run.plan->tasks.size());
    for (int k = 0; k < 3; ++k) {
      const Status status = run.executor->run();
      EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
      EXPECT_EQ(status.message(), "Fail (node 1): a toy failure");
    }
  }
}

TEST(Recorder, ReadsWhatTheHostWritesBetweenReplays) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId lr = b.source(Source::kScalar, "lr", {2});
  b.output("y", b.op("Mul", {x, lr}));
  Backend backend({.threaded = true});
  ToyRun run(b.graph, backend);
  for (int k = 1; k < 5; ++k) {
    run.set_input("x", {1, 2});
    float* const rate =
        static_cast<float*>(run.executor->tensor(*run.executor->scalar("lr"))->data);
    rate[0] = rate[1] = float(k);
    run.step();
    EXPECT_EQ(run.output("y"), (std::vector<float>{float(k), float(2 * k)}));
  }
}

TEST(Recorder, AReplayAllocatesNothing) {
  const Graph graph = toy::wide_graph();
  for (const bool threaded : {false, true}) {
    Backend backend({.threaded = threaded});
    toy::Scheduler scheduler = toy::Scheduler::random(3, 5);
    ToyRun run(graph, backend, {.scheduler = scheduler.table()});
    ASSERT_EQ(run.executor->recorded_tasks(), run.plan->tasks.size());
    const size_t before = test::allocation_count();
    bool ok = true;
    for (int k = 0; k < 100; ++k) ok = ok && run.executor->run().ok();
    EXPECT_EQ(test::allocation_count() - before, 0u) << "not even the first";
    EXPECT_TRUE(ok);
  }
}

}  // namespace
}  // namespace gradrack
