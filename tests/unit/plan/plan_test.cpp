// SPDX-License-Identifier: Apache-2.0
// Plans: what is live, what memory is announced, which bytes are shared.
#include "core/plan/plan.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;

std::shared_ptr<const Plan> plan_of(const Graph& graph, Backend& backend, Bindings bindings = {}) {
  PlanRequest request;
  request.graph = &graph;
  request.bindings = std::move(bindings);
  request.devices = {backend.device()};
  auto made = make_plan(request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

Status plan_error(const Graph& graph, Backend& backend, Bindings bindings = {}) {
  PlanRequest request;
  request.graph = &graph;
  request.bindings = std::move(bindings);
  request.devices = {backend.device()};
  return make_plan(request).status();
}

TEST(Plan, DropsWhatNothingNeeds) {
  Builder b;
  const ValueId x = b.input("x", {4});
  b.op("Fail", {x});
  b.output("y", b.op("Neg", {x}));
  Backend backend;
  EXPECT_EQ(plan_of(b.graph, backend)->tasks.size(), 1u);
}

TEST(Plan, NamesTheSymbolThatIsNotBound) {
  Builder b;
  b.output("y", b.op("Neg", {b.input("x", {Dim::symbol("batch")})}));
  Backend backend;
  const Status status = plan_error(b.graph, backend);
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("batch"), std::string::npos) << status.message();
}

TEST(Plan, RefusesASourceWrittenTwice) {
  Builder b;
  const ValueId p = b.parameter("p", {2});
  b.write(p, b.op("Neg", {p}));
  b.write(p, b.op("Twice", {p}));
  Backend backend;
  const Status status = plan_error(b.graph, backend);
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("'p' is written twice"), std::string::npos) << status.message();
}

TEST(Plan, ReusesBytesInPlaceAlongAChain) {
  Builder b;
  ValueId x = b.op("Twice", {b.input("x", {1024})});
  for (int k = 0; k < 10; ++k) x = b.op("Neg", {x});
  b.output("y", b.op("Sum", {x}));
  Backend backend;
  const auto plan = plan_of(b.graph, backend);
  EXPECT_EQ(plan->memory.arena, 2 * 4096);  // one tensor, and the workspace of Twice
  toy::expect_sound(*plan);
}

TEST(Plan, DoesNotOverwriteAnInputThatIsReadAgain) {
  Builder b;
  const ValueId x = b.op("Twice", {b.input("x", {1024})});
  b.output("y", b.op("Sum", {b.op("Add", {b.op("Neg", {x}), x})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  run.set_input("x", std::vector<float>(1024, 1));
  run.step();
  EXPECT_EQ(run.output("y")[0], 0);
}

TEST(Plan, ViewsShareTheBytesOfTheirRoot) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  b.output("flat", b.op("Flat", {x}));
  Backend backend;
  const auto plan = plan_of(b.graph, backend);
  EXPECT_EQ(plan->tasks.size(), 0u);
  EXPECT_EQ(plan->tensors[size_t(plan->outputs[0].tensor)].storage,
            plan->tensors[size_t(plan->inputs[0].tensor)].storage);
}

Graph step_graph() {
  Builder b;
  const ValueId x = b.input("x", {8, 16});
  const ValueId w = b.parameter("w", {16, 4});
  const ValueId m = b.source(Source::kState, "m", {16, 4});
  const ValueId a = b.source(Source::kAccumulator, "a", {16, 4});
  const ValueId s = b.source(Source::kBuffer, "s", {3});
  const ValueId y = b.op("Product", {x, w});
  b.output("y", y);
  b.output("loss",
           b.op("Sum", {b.op("Twice",
                             {b.op("Add", {y, b.constant({8, 4}, std::vector<double>(32, 1))})})}));
  b.write(m, b.op("Add", {m, a}));
  b.write(w, b.op("Move", {w, b.op("Neg", {m})}));
  b.write(s, b.op("Neg", {s}));
  return std::move(b.graph);
}

TEST(Plan, AnnouncesExactlyWhatIsAllocated) {
  const Graph graph = step_graph();
  Backend backend;
  ToyRun run(graph, backend);
  const MemoryReport& memory = run.plan->memory;
  EXPECT_EQ(backend.device()->allocated_bytes(), memory.total());
  EXPECT_EQ(run.store->bytes(Source::kParameter), memory.parameters);
  EXPECT_EQ(run.store->bytes(Source::kBuffer), memory.buffers);
  EXPECT_EQ(run.store->bytes(Source::kState), memory.states);
  EXPECT_EQ(run.store->bytes(Source::kAccumulator), memory.accumulators);
  EXPECT_GT(memory.arena, 0);
  EXPECT_LE(memory.live_peak, memory.arena);
  EXPECT_FALSE(memory.peak_task.empty());
}

TEST(Plan, MemoryGoesBackWhenAllIsGone) {
  const Graph graph = step_graph();
  Backend backend;
  { ToyRun run(graph, backend); }
  EXPECT_EQ(backend.device()->allocated_bytes(), 0);
}

TEST(Plan, DescribesDevicesTasksAndMemory) {
  const Graph graph = step_graph();
  Backend backend;
  const std::string text = describe(*plan_of(graph, backend), true);
  for (const char* part : {"backend toy: 8 native, 0 decomposed, 0 to the next",
                           "schedule: program order, 1 streams, 0 waits",
                           "memory: parameters 256 B", "toy/0 0: forward Product (node 0)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Plan, SaysWhyAScheduleWasNotTaken) {
  const Graph graph = step_graph();
  Backend backend;
  toy::Scheduler bad(1,
                     [](const gr_schedule_request_t& request, uint32_t* order, uint32_t* stream,
                        gr_error_t*) -> int32_t {
                       for (uint32_t t = 0; t < request.task_count; ++t) {
                         order[t] = request.task_count - 1 - t;
                         stream[t] = 0;
                       }
                       return GR_OK;
                     });
  PlanRequest request;
  request.graph = &graph;
  request.devices = {backend.device()};
  request.scheduler_name = "backwards";
  request.scheduler = bad.table();
  auto made = make_plan(request);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ((*made)->events.size(), 1u);
  EXPECT_NE((*made)->events[0].find("scheduler backwards: task"), std::string::npos)
      << (*made)->events[0];
}

TEST(Plan, TellsTheSchedulerBytesThatAddUp) {
  const Graph graph = step_graph();
  Backend backend;
  const auto plan = plan_of(graph, backend);
  int64_t held = 0, freed = 0;
  for (const Task& task : plan->table.tasks) {
    held += task.bytes_held;
    freed += task.bytes_freed;
    EXPECT_GT(task.cost_ns, 0) << task.name;
  }
  EXPECT_GT(held, 0);
  EXPECT_EQ(held, freed);
  int64_t buffers = 0;
  for (const TaskBuffer& buffer : plan->table.buffers) {
    buffers += buffer.bytes;
    EXPECT_TRUE(std::is_sorted(buffer.users.begin(), buffer.users.end()));
    EXPECT_FALSE(buffer.kept);
  }
  EXPECT_EQ(buffers, held);
}

}  // namespace
}  // namespace gradrack
