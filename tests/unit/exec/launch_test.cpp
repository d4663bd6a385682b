// SPDX-License-Identifier: Apache-2.0
// Runs that are launched one behind the other and waited for together: the bytes of runs made one
// by one, on any streams; errors that name their task; how often the host waited.
#include <gtest/gtest.h>

#include "tests/support/count_allocations.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;
using Floats = std::vector<float>;

constexpr int64_t kSize = 512;

/// Adds 4 x + 2 x to an accumulator, by chains that may run at once.
Graph adds_up() {
  Builder b;
  const ValueId x = b.input("x", {kSize});
  const ValueId sum = b.source(Source::kAccumulator, "sum", {kSize});
  ValueId a = x;
  for (int k = 0; k < 2; ++k) a = b.op("Twice", {b.op("Neg", {a})});
  const ValueId c = b.op("Twice", {b.op("Neg", {b.op("Neg", {x})})});
  b.write(sum, b.op("Add", {sum, b.op("Add", {a, c})}));
  return std::move(b.graph);
}

/// Two executors of a plan over one store, streams and arena.
struct Pair {
  Pair(const Graph& graph, Backend& backend, uint32_t streams, uint32_t seed)
      : scheduler(toy::Scheduler::random(streams, seed)),
        run(graph, backend, toy::planned(graph, backend, {.scheduler = scheduler.table()}),
            options(graph, backend)) {
    other = std::move(*Executor::make(run.plan, run.store.get(), {set, arenas}));
    both[0] = run.executor.get();
    both[1] = other.get();
  }

  Status launch(int k, float number) {
    Executor& executor = *both[k % 2];
    GR_TRY(executor.wait_for_ports());
    auto* const x = static_cast<float*>(executor.tensor(*executor.input("x"))->data);
    std::fill(x, x + kSize, number);
    return executor.launch();
  }

  ExecutorOptions options(const Graph& graph, Backend& backend) {
    const auto plan = toy::planned(graph, backend, {.scheduler = scheduler.table()});
    const Plan* const plans[] = {plan.get()};
    arenas = *ArenaBlocks::make(plans);
    return {set, arenas};
  }

  toy::Scheduler scheduler;
  std::shared_ptr<StreamSet> set = std::make_shared<StreamSet>();
  std::shared_ptr<const ArenaBlocks> arenas;
  ToyRun run;
  std::unique_ptr<Executor> other;
  Executor* both[2];
};

TEST(Launch, GivesTheBytesOfRunsOneByOneOnAnyStreams) {
  const Graph graph = adds_up();
  Backend backend({.threaded = true});
  for (uint32_t seed = 0; seed < 24; ++seed) {
    Pair pair(graph, backend, 1 + seed % 4, seed);
    float sum = 0;
    for (int k = 0; k < 30; ++k) {
      ASSERT_TRUE(pair.launch(k, float(k)).ok());
      sum += float(6 * k);
    }
    ASSERT_TRUE(pair.set->wait().ok());
    EXPECT_EQ(pair.run.stored("sum"), Floats(size_t{kSize}, sum)) << "seed " << seed;
  }
}

TEST(Launch, WaitsOnceForAllAndForPortsWhileALaterRunIsQueued) {
  const Graph graph = adds_up();
  Backend backend({.threaded = true});
  Pair pair(graph, backend, 2, 1);
  for (int k = 0; k < 2; ++k) ASSERT_TRUE(pair.launch(k, 1).ok());
  EXPECT_EQ(pair.set->waits().ports, 0);
  for (int k = 2; k < 5; ++k) ASSERT_TRUE(pair.launch(k, 1).ok());
  EXPECT_EQ(pair.set->waits().ports, 3);
  EXPECT_EQ(pair.set->waits().runs, 0);
  ASSERT_TRUE(pair.set->wait().ok());
  ASSERT_TRUE(pair.set->wait().ok()) << "nothing is left";
  EXPECT_EQ(pair.set->waits().runs, 1);
}

TEST(Launch, AllocatesNothing) {
  const Graph graph = adds_up();
  Backend backend({.threaded = true});
  Pair pair(graph, backend, 3, 5);
  ASSERT_TRUE(pair.launch(0, 1).ok() && pair.launch(1, 1).ok() && pair.set->wait().ok());
  Executor& first = *pair.both[0];
  Executor& second = *pair.both[1];
  const size_t before = test::allocation_count();
  bool ok = true;
  for (int k = 0; k < 50; ++k) ok = ok && first.launch().ok() && second.launch().ok();
  ok = ok && pair.set->wait().ok();
  EXPECT_EQ(test::allocation_count() - before, 0u);
  EXPECT_TRUE(ok);
}

TEST(Launch, ThatMayHaveToBeUndoneIsOverBeforeTheNextBegins) {
  Builder b;
  const ValueId p = b.parameter("p", {kSize}, 10), q = b.parameter("q", {kSize}, 10);
  const ValueId x = b.input("x", {kSize});
  b.write(p, b.op("Move", {p, x}));
  b.write(q, b.op("Move", {q, b.op("Neg", {x})}));
  Backend backend({.threaded = true});
  PlanRequest request;
  request.undo = true;
  ToyRun run(b.graph, backend, request);
  ASSERT_FALSE(run.plan->undo.copies.empty());
  const auto set = std::make_shared<StreamSet>();
  const auto one = std::move(*Executor::make(run.plan, run.store.get(), {set}));
  const auto two = std::move(*Executor::make(run.plan, run.store.get(), {set}));
  ASSERT_TRUE(one->launch().ok());
  EXPECT_EQ(set->waits().runs, 0);
  ASSERT_TRUE(two->launch().ok());
  EXPECT_EQ(set->waits().runs, 1);
  ASSERT_TRUE(set->wait().ok());
}

void expect_the_first_failure_is_named(bool threaded, uint32_t streams) {
  Backend backend({.threaded = threaded});
  toy::Scheduler scheduler = toy::Scheduler::random(streams, 3);
  const auto set = std::make_shared<StreamSet>();
  Builder b;
  ASSERT_TRUE(b.graph.push_stage("blocks").ok());
  const ValueId y = b.op("Fail", {b.op("Twice", {b.input("x", {3})})});
  ASSERT_TRUE(b.graph.pop_stage().ok());
  b.output("y", b.op("Neg", {y}));
  ToyRun bad(b.graph, backend, {.scheduler = scheduler.table()}, {set});
  const Graph graph = adds_up();
  ToyRun good(graph, backend, {.scheduler = scheduler.table()}, {set});
  for (int k = 0; k < 2; ++k) {
    good.set_input("x", Floats(size_t{kSize}, 1));
    Status status = bad.executor->launch();
    if (status.ok()) status = good.executor->launch();
    if (status.ok()) status = set->wait();
    EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
    EXPECT_EQ(status.message(), "Fail in blocks (node 1): a toy failure");
    EXPECT_EQ(good.stored("sum"), Floats(size_t{kSize}, 0)) << "skipped behind the failure";
  }
  good.step();
  EXPECT_EQ(good.stored("sum"), Floats(size_t{kSize}, 6)) << "nothing of the failure is left";
}

TEST(Launch, TheFailureOfAnEarlierRunIsNamedOnInlineStreams) {
  expect_the_first_failure_is_named(false, 1);
}

TEST(Launch, TheFailureOfAnEarlierRunIsNamedOnThreadedStreams) {
  expect_the_first_failure_is_named(true, 3);
}

TEST(Launch, AnExecutorThatEndsIsWaitedFor) {
  const Graph graph = adds_up();
  Backend backend({.threaded = true});
  Pair pair(graph, backend, 3, 5);
  ASSERT_TRUE(pair.launch(0, 1).ok() && pair.launch(1, 1).ok());
  pair.other.reset();
  EXPECT_EQ(pair.run.stored("sum"), Floats(size_t{kSize}, 12));
  ASSERT_TRUE(pair.launch(0, 1).ok() && pair.set->wait().ok());
  EXPECT_EQ(pair.run.stored("sum"), Floats(size_t{kSize}, 18));
}

TEST(Launch, OfADeviceForOneAtATimeWaitsAtOnce) {
  const Graph graph = adds_up();
  Backend backend({.concurrent = false});
  ToyRun run(graph, backend);
  run.set_input("x", Floats(size_t{kSize}, 1));
  ASSERT_TRUE(run.executor->launch().ok());
  EXPECT_EQ(run.stored("sum"), Floats(size_t{kSize}, 6));
}

}  // namespace
}  // namespace gradrack
