// SPDX-License-Identifier: Apache-2.0
// A run that fails at any task leaves every byte of parameters, buffers and state as it was, and
// the next one goes on as if nothing had happened.
//
// Each task fails in turn: a launch or copy that the backend refuses, and a kernel that fails
// later, on its stream; on one stream and four, in order and drawn at random, launched and
// replayed.
#include <gtest/gtest.h>

#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;

/// Commits of each kind: in place, by a copy, a swap, one value to two tensors; over parameters, a
/// state, a buffer and an accumulator.
Graph training_graph() {
  Builder b;
  const ValueId x = b.input("x", {4, 4});
  const ValueId state = b.source(Source::kState, "m", {4, 4});
  const ValueId buffer = b.source(Source::kBuffer, "mean", {4, 4});
  const ValueId sums = b.source(Source::kAccumulator, "sums", {4, 4});
  ValueId last = x;
  for (int k = 0; k < 4; ++k) {
    const ValueId w = b.parameter("w" + std::to_string(k), {4, 4}, 0.25 * (k + 1));
    last = b.op("Add", {b.op("Product", {last, w}), b.op("Poly", {w})});
    b.write(w, b.op("Move", {w, b.op("Neg", {last})}));
  }
  const ValueId m = b.op("Move", {state, last});
  b.write(state, m);
  b.write(buffer, b.op("Twice", {b.op("Add", {buffer, m})}));
  b.write(sums, b.op("Add", {sums, last}));
  const ValueId a = b.parameter("a", {4, 4}, 1), c = b.parameter("c", {4, 4}, 2);
  b.write(a, c);
  b.write(c, a);
  b.output("loss", b.op("Sum", {last}));
  return std::move(b.graph);
}

/// Updates that wait for every product: what may fail is over when the first commit begins.
Graph gated_graph() {
  Builder b;
  ValueId last = b.input("x", {4, 4});
  std::vector<ValueId> weights;
  for (int k = 0; k < 4; ++k) {
    weights.push_back(b.parameter("w" + std::to_string(k), {4, 4}, 0.25 * (k + 1)));
    last = b.op("Product", {last, weights.back()});
  }
  for (const ValueId w : weights) b.write(w, b.op("Move", {w, b.op("Neg", {last})}));
  const ValueId state = b.source(Source::kState, "m", {4, 4});
  b.write(state, b.op("Move", {state, last}));
  b.output("loss", b.op("Sum", {last}));
  return std::move(b.graph);
}

const std::set<std::string> kSure = {"Move", "Neg", "Sum"};

/// The toy backend's table, whose launch or copy number `at` from now on is refused; one at a time.
struct Refusing {
  static inline gr_backend_t inner = {};
  static inline gr_backend_t table = {};
  static inline int64_t at = 0;

  static const gr_backend_t* wrap(const gr_backend_t* from) {
    inner = table = *from;
    at = 0;
    table.launch = [](void* self, gr_kernel_t* kernel, const DLTensor* const* in,
                      DLTensor* const* out, const DLTensor* workspace, gr_stream_t* stream,
                      gr_error_t* err) {
      if (at > 0 && --at == 0) return gr_fail(err, GR_IO, "launch", "refused");
      return inner.launch(self, kernel, in, out, workspace, stream, err);
    };
    table.copy = [](void* self, const DLTensor* to, const DLTensor* from_tensor,
                    gr_stream_t* stream, gr_error_t* err) {
      if (at > 0 && --at == 0) return gr_fail(err, GR_IO, "copy", "refused");
      return inner.copy(self, to, from_tensor, stream, err);
    };
    return &table;
  }
};

std::vector<float> kept(ToyRun& run) {
  std::vector<float> all;
  for (const StoredTensor& tensor : run.store->tensors()) {
    if (tensor.source == Source::kAccumulator) continue;
    const std::vector<float> one = run.stored(tensor.name);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

struct Case {
  uint32_t streams = 1;
  uint32_t seed = 0;  // 0: program order
  bool threaded = false;
  bool replayed = true;
  bool later = true;  // the kernel fails on its stream; else the backend refuses the call
  int32_t memory = GR_MEMORY_HOST;
  bool gated = false;  // the graph without undo copies
};

void fail_each_task_in_turn(const Case& c) {
  const Graph graph = c.gated ? gated_graph() : training_graph();
  Backend backend({.sure = c.gated ? kSure : std::set<std::string>(),
                   .threaded = c.threaded,
                   .memory = c.memory,
                   .wrap = Refusing::wrap});
  toy::Scheduler scheduler = toy::Scheduler::random(c.streams, c.seed);
  PlanRequest request = {.scheduler = c.seed > 0 ? scheduler.table() : nullptr};
  request.undo = true;
  ExecutorOptions options;
  options.record = c.replayed;
  ToyRun run(graph, backend, request, options);
  toy::expect_sound(*run.plan);
  EXPECT_EQ(run.plan->undo.needless, c.gated);
  EXPECT_EQ(run.plan->undo.copies.empty(), c.gated);
  run.set_input("x", std::vector<float>(16, 0.01f));
  run.step();
  const std::vector<float> before = kept(run);
  size_t failures = 0;
  for (int64_t k = 1;; ++k) {
    toy::fail_kernel(c.later ? k : 0);
    Refusing::at = c.later ? 0 : k;
    const Status status = run.executor->run();
    toy::fail_kernel(0);
    Refusing::at = 0;
    if (status.ok()) break;  // there is no task k
    EXPECT_EQ(status.code(), c.later ? GR_OUT_OF_RANGE : GR_IO) << status.message();
    ASSERT_EQ(kept(run), before) << "task " << k << ": " << status.message();
    ++failures;
  }
  size_t kernels = 0;
  for (const PlanTask& task : run.plan->tasks) kernels += task.kernel >= 0 ? 1 : 0;
  if (c.gated) kernels = 4;  // the products
  EXPECT_EQ(failures, c.later ? kernels : run.plan->tasks.size());
  // The run that ended the loop did what it would have done without all these failures.
  Backend plain;
  ToyRun expected(graph, plain);
  expected.set_input("x", std::vector<float>(16, 0.01f));
  expected.step();
  EXPECT_EQ(kept(expected), before);
  expected.step();
  EXPECT_EQ(kept(expected), kept(run));
}

void fail_each_task(Case c) {
  for (const int32_t memory : {GR_MEMORY_HOST, GR_MEMORY_DEVICE}) {
    c.memory = memory;
    c.seed = 0;
    fail_each_task_in_turn(c);
    for (c.seed = 1; c.streams > 1 && c.seed <= 12; ++c.seed) {
      if (::testing::Test::HasFatalFailure()) return;
      fail_each_task_in_turn(c);
    }
  }
}

TEST(Undo, AfterAKernelThatFailsInAReplay) { fail_each_task({.streams = 1}); }

TEST(Undo, AfterAKernelThatFailsOnAThread) { fail_each_task({.streams = 1, .threaded = true}); }

TEST(Undo, AfterAKernelThatFailsOnOneOfFourStreams) {
  fail_each_task({.streams = 4, .threaded = true});
}

TEST(Undo, AfterAKernelThatFailsOnOneOfFourStreamsWithoutARecording) {
  fail_each_task({.streams = 4, .threaded = true, .replayed = false});
}

TEST(Undo, AfterAKernelThatFailsOnFourInlineStreams) { fail_each_task({.streams = 4}); }

TEST(Undo, AfterACallThatIsRefused) {
  fail_each_task({.streams = 1, .replayed = false, .later = false});
}

TEST(Undo, AfterACallThatIsRefusedOnFourStreams) {
  fail_each_task({.streams = 4, .threaded = true, .replayed = false, .later = false});
}

TEST(Undo, NeedsNoCopiesWhereNothingFailsBehindTheFirstCommit) {
  for (const bool threaded : {false, true}) {
    Case c = {.threaded = threaded, .gated = true};
    fail_each_task_in_turn(c);
    for (c.streams = 4, c.seed = 1; c.seed <= 12; ++c.seed) fail_each_task_in_turn(c);
  }
}

TEST(Undo, MakesCopiesForOneTaskThatMayFailLateAndForStepsTakenBack) {
  const Graph graph = gated_graph();
  PlanRequest request;
  request.undo = true;
  Backend all({.sure = kSure});
  const auto none = toy::planned(graph, all, request);
  EXPECT_TRUE(none->undo.needless);
  EXPECT_EQ(none->memory.undo, 0);
  EXPECT_NE(describe(*none).find("undo: no copies, nothing can fail once a tensor is written"),
            std::string::npos)
      << describe(*none);
  for (const std::string& op : kSure) {
    std::set<std::string> sure = kSure;
    sure.erase(op);
    Backend backend({.sure = sure});
    const auto plan = toy::planned(graph, backend, request);
    EXPECT_EQ(plan->undo.copies.size(), 5u) << op << " may fail";
    EXPECT_FALSE(plan->undo.needless) << op;
  }
  request.take_back = true;
  EXPECT_EQ(toy::planned(graph, all, request)->undo.copies.size(), 5u);
}

TEST(Undo, CountsItsBytes) {
  const Graph graph = training_graph();
  Backend backend;
  PlanRequest request;
  const auto without = toy::planned(graph, backend, request);
  request.undo = true;
  const auto with = toy::planned(graph, backend, request);
  EXPECT_EQ(without->memory.undo, 0);
  EXPECT_EQ(with->memory.undo, 8 * 4 * 4 * 4) << "eight tensors; the accumulator is not among them";
  EXPECT_EQ(with->undo.copies.size(), 8u);
  EXPECT_NE(describe(*with).find("undo: 8 copies, 512 B of the arena"), std::string::npos)
      << describe(*with);
  EXPECT_EQ(describe(*without).find("undo"), std::string::npos);
}

TEST(Undo, IsNotForPlansThatCommitNothing) {
  Builder b;
  b.output("y", b.op("Neg", {b.parameter("p", {3}, 1)}));
  Backend backend;
  PlanRequest request;
  request.undo = true;
  EXPECT_EQ(toy::planned(b.graph, backend, request)->tasks.size(), 1u);
}

TEST(Undo, SaysSoWhenTheCopiesCannotBePutBack) {
  const Graph graph = training_graph();
  Backend backend({.wrap = Refusing::wrap});
  PlanRequest request;
  request.undo = true;
  ToyRun run(graph, backend, request);
  run.set_input("x", std::vector<float>(16, 0.01f));
  run.step();
  size_t kernels = 0;
  for (const PlanTask& task : run.plan->tasks) kernels += task.kernel >= 0 ? 1 : 0;
  toy::fail_kernel(int64_t(kernels));
  Refusing::at = 3;  // a replay calls nothing: the marker, one copy, and the one that is refused
  const Status status = run.executor->run();
  toy::fail_kernel(0);
  EXPECT_NE(status.message().find("could not be put back as they were before this step: copy: "
                                  "refused"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace gradrack
