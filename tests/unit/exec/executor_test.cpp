// SPDX-License-Identifier: Apache-2.0
// Executor: results of small graphs, ports, errors that name the task, no allocation while running.
#include "core/exec/executor.hpp"

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

TEST(Executor, RunsAGraphOnOneStream) {
  Builder b;
  const ValueId x = b.input("x", {Dim::symbol("n")});
  const ValueId w = b.parameter("w", {2}, 3);
  b.output("y", b.op("Add", {b.op("Mul", {x, w}), b.constant({2}, {10, 20})}));
  Backend backend;
  ToyRun run(b.graph, backend, {.bindings = {{"n", 2}}});
  run.set_input("x", {1, 2});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{13, 26}));
  run.set_input("x", {0, -1});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{10, 17}));
}

TEST(Executor, RunsDecompositions) {
  Builder b;
  b.output("y", b.op("Poly", {b.input("x", {3})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  run.set_input("x", {1, 2, -3});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{2, 6, 6}));
}

TEST(Executor, RunsWhatReadsAViewWhoseShapeIsMadeFromAnother) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  const ValueId flat = b.op("Flat", {b.op("Twice", {x})});
  b.output("y", b.op("Neg", {b.op("Reshape", {flat, b.op("Shape", {x})})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(run.plan->tasks.size(), 2u);
  run.set_input("x", {1, 2, 3, 4, 5, 6});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{-2, -4, -6, -8, -10, -12}));
}

TEST(Executor, MovesBetweenDevicesThatShareHostMemory) {
  Builder b;
  const ValueId x = b.input("x", {3});
  b.output("y", b.op("Neg", {b.op("Twice", {b.op("Neg", {x})})}));
  Backend first({.name = "first", .refused = {"Twice"}, .threaded = true});
  Backend second({.name = "second", .threaded = true});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  for (int k = 0; k < 20; ++k) {
    run.set_input("x", {1, 2, float(k)});
    run.step();
    EXPECT_EQ(run.output("y"), (Floats{2, 4, float(2 * k)}));
  }
  toy::expect_sound(*run.plan);
}

TEST(Executor, HandlesEmptyTensors) {
  Builder b;
  const ValueId x = b.input("x", {0, 3});
  b.output("y", b.op("Neg", {b.op("Twice", {x})}));
  b.output("sum", b.op("Sum", {x}));
  Backend backend;
  ToyRun run(b.graph, backend);
  run.step();
  EXPECT_TRUE(run.output("y").empty());
  EXPECT_EQ(run.output("sum"), (Floats{0}));
}

TEST(Executor, ScalarsAreWrittenInTheirDtype) {
  Builder b;
  b.output("lr", b.source(Source::kScalar, "lr", {}, GR_FLOAT64));
  b.output("rng", b.source(Source::kScalar, "rng", {3}, GR_INT64));
  Backend backend;
  ToyRun run(b.graph, backend);
  auto lr = run.executor->scalar("lr");
  auto rng = run.executor->scalar("rng");
  ASSERT_TRUE(lr.ok() && rng.ok());
  ASSERT_TRUE(run.executor->set_scalar(*lr, 1e-3).ok());
  const int64_t numbers[] = {7, 8, 9};
  ASSERT_TRUE(run.executor->set_scalar(*rng, numbers).ok());
  EXPECT_FALSE(run.executor->set_scalar(*rng, 1.0).ok());
  run.step();
  EXPECT_EQ(*run.executor->read_scalar(*run.executor->output("lr")), 1e-3);
  EXPECT_EQ(static_cast<int64_t*>(run.executor->tensor(*run.executor->output("rng"))->data)[2], 9);
}

TEST(Executor, ReadsObjectives) {
  Builder b;
  const ValueId x = b.input("x", {3});
  ASSERT_TRUE(b.graph.add_objective("loss", b.op("Sum", {x}), b.constant({}, {3})).ok());
  Backend backend;
  ToyRun run(b.graph, backend);
  run.set_input("x", {1, 2, 3});
  run.step();
  EXPECT_EQ(*run.executor->read_scalar(*run.executor->objective_sum("loss")), 6);
  EXPECT_EQ(*run.executor->read_scalar(*run.executor->objective_count("loss")), 3);
}

TEST(Executor, AnUnknownPortNamesTheNearest) {
  Builder b;
  b.output("logits", b.op("Neg", {b.input("tokens", {3})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  const Status status = run.executor->input("token").status();
  EXPECT_EQ(status.code(), GR_NOT_FOUND);
  EXPECT_NE(status.message().find("did you mean 'tokens'?"), std::string::npos) << status.message();
}

TEST(Executor, AMissingParameterIsNamed) {
  Builder b;
  b.output("y", b.op("Neg", {b.parameter("blocks.0.w", {3})}));
  Backend backend;
  PlanRequest request;
  request.graph = &b.graph;
  request.devices = {backend.device()};
  auto plan = make_plan(request);
  ASSERT_TRUE(plan.ok());
  Store empty(backend.device());
  ASSERT_TRUE(empty.allocate().ok());
  const Status status = Executor::make(*plan, &empty).status();
  EXPECT_EQ(status.code(), GR_NOT_FOUND);
  EXPECT_NE(status.message().find("'blocks.0.w'"), std::string::npos) << status.message();
}

void expect_failure_is_named(bool threaded, uint32_t streams) {
  Builder b;
  const ValueId x = b.input("x", {3});
  ASSERT_TRUE(b.graph.push_stage("blocks").ok());
  ValueId y = b.op("Twice", {x});
  y = b.op("Fail", {y});
  ASSERT_TRUE(b.graph.pop_stage().ok());
  const ValueId p = b.parameter("p", {3}, 1);
  b.write(p, b.op("Move", {p, x}));
  b.output("y", b.op("Neg", {y}));
  Backend backend({.threaded = threaded});
  toy::Scheduler scheduler = toy::Scheduler::random(streams, 3);
  ToyRun run(b.graph, backend, {.scheduler = scheduler.table()});
  for (int k = 0; k < 2; ++k) {
    const Status status = run.executor->run();
    EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
    EXPECT_EQ(status.message(), "Fail in blocks (node 1): a toy failure");
  }
}

TEST(Executor, AKernelErrorNamesOperatorStageAndNode) { expect_failure_is_named(false, 1); }

TEST(Executor, AnAsynchronousErrorNamesOperatorStageAndNode) { expect_failure_is_named(true, 3); }

TEST(Executor, EveryScheduleGivesTheSameBytes) {
  const Graph graph = toy::wide_graph();
  Backend inline_backend;
  ToyRun expected_run(graph, inline_backend);
  const uint64_t expected = expected_run.hash_after_steps();
  Backend backend({.threaded = true});
  size_t waits = 0;
  for (uint32_t seed = 0; seed < 48; ++seed) {
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    ToyRun run(graph, backend, {.scheduler_name = "random", .scheduler = scheduler.table()});
    EXPECT_EQ(run.plan->schedule.fallback_reason, "");
    toy::expect_sound(*run.plan);
    EXPECT_EQ(run.hash_after_steps(), expected) << "seed " << seed;
    waits += run.plan->schedule.waits.size();
  }
  EXPECT_GT(waits, 100u);
}

TEST(Executor, LosingAnyWaitOfARealPlanIsCaught) {
  const Graph graph = toy::wide_graph();
  Backend backend;
  toy::Scheduler scheduler = toy::Scheduler::random(4, 11);
  ToyRun run(graph, backend, {.scheduler = scheduler.table()});
  const Plan& plan = *run.plan;
  ASSERT_GT(plan.schedule.waits.size(), 5u);
  for (size_t k = 0; k < plan.schedule.waits.size(); ++k) {
    Schedule mutant = plan.schedule;
    mutant.waits.erase(mutant.waits.begin() + static_cast<std::ptrdiff_t>(k));
    TaskTable no_deps = plan.table;  // the bytes alone must show the race
    for (Task& task : no_deps.tasks) task.deps.clear();
    EXPECT_FALSE(check_happens_before(no_deps, mutant, plan.accesses).ok()) << "wait " << k;
  }
}

void expect_no_allocation(bool threaded, uint32_t streams) {
  const Graph graph = toy::wide_graph();
  Backend backend({.threaded = threaded});
  toy::Scheduler scheduler = toy::Scheduler::random(streams, 5);
  ToyRun run(graph, backend, {.scheduler = scheduler.table()});
  ASSERT_TRUE(run.executor->run().ok());
  const size_t before = test::allocation_count();
  bool ok = true;
  for (int k = 0; k < 100; ++k) ok = ok && run.executor->run().ok();
  EXPECT_EQ(test::allocation_count() - before, 0u);
  EXPECT_TRUE(ok);
}

TEST(Executor, RunAllocatesNothingAfterTheFirst) { expect_no_allocation(false, 1); }

TEST(Executor, RunAllocatesNothingOnThreadedStreams) { expect_no_allocation(true, 3); }

}  // namespace
}  // namespace gradrack
