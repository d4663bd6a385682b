// SPDX-License-Identifier: Apache-2.0
// Which order a plan gets: the scheduler's, or program order with the reason, above all where
// memory.limit decides.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/plan/plan.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;

/// Four towers of a stage each over one input of `rows` rows, and the sum of their ends.
Graph towers(Dim rows = 32) {
  Builder b;
  const ValueId x = b.input("x", {rows, 32});
  ValueId sum = GR_NO_VALUE;
  for (int k = 0; k < 4; ++k) {
    const std::string name = "tower" + std::to_string(k);
    b.graph.set_stage(b.graph.intern_stage(name));
    const ValueId w = b.parameter(name + ".w", {32, 32}, 0.1 * (k + 1));
    ValueId y = x;
    for (int layer = 0; layer < 3; ++layer) y = b.op("Twice", {b.op("Product", {y, w})});
    const ValueId end = b.op("Sum", {y});
    b.graph.set_stage(-1);
    sum = k == 0 ? end : b.op("Add", {sum, end});
  }
  b.output("y", sum);
  return std::move(b.graph);
}

/// Program order, tower by tower on the streams that the memory limit is enough for: `bytes[k]` for
/// k + 1 streams. Remembers the limits that it was asked under.
struct TowerScheduler {
  explicit TowerScheduler(std::vector<int64_t> bytes)
      : scheduler(4,
                  [this, bytes](const gr_schedule_request_t& request, uint32_t* order,
                                uint32_t* stream, gr_error_t* err) -> int32_t {
                    limits.push_back(request.memory_limit);
                    uint32_t streams = 4;
                    const auto over = [&] { return bytes[streams - 1] > request.memory_limit; };
                    while (request.memory_limit > 0 && streams > 0 && over()) --streams;
                    if (streams == 0)
                      return gr_fail(err, GR_UNSUPPORTED, "", "not enough for one stream");
                    for (uint32_t t = 0; t < request.task_count; ++t) {
                      order[t] = t;
                      const int32_t stage = request.tasks[t].stage;
                      stream[t] = stage < 0 ? 0 : static_cast<uint32_t>(stage) % streams;
                    }
                    return GR_OK;
                  }) {}
  std::vector<int64_t> limits;
  toy::Scheduler scheduler;
};

std::shared_ptr<const Plan> plan_with(Backend& backend, TowerScheduler& towers_of,
                                      int64_t memory_limit, bool auto_off = true) {
  PlanRequest request;
  request.scheduler_name = "towers";
  request.scheduler = towers_of.scheduler.table();
  request.auto_off = auto_off;
  request.memory_limit = memory_limit;
  const Graph graph = towers();
  return toy::planned(graph, backend, std::move(request));
}

/// Bytes of the arena, and those of all the rest, by number of streams.
struct Sizes {
  int64_t arena[5] = {};
  int64_t rest = 0;
};

Sizes sizes_of(Backend& backend) {
  Sizes sizes;
  for (const uint32_t streams : {1u, 2u, 4u}) {
    std::vector<int64_t> bytes(4, INT64_MAX);
    bytes[streams - 1] = 1;
    TowerScheduler only(bytes);
    const auto plan = plan_with(backend, only, INT64_MAX / 2, false);
    EXPECT_EQ(plan->schedule.lanes.size(), streams);
    sizes.arena[streams] = plan->memory.arena;
    sizes.rest = plan->memory.total() - plan->memory.arena;
  }
  EXPECT_LT(sizes.arena[1], sizes.arena[2]);
  EXPECT_LT(sizes.arena[2], sizes.arena[4]);
  return sizes;
}

void expect_event(const Plan& plan, const std::string& text) {
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_NE(plan.events[0].find("program order on one stream instead: scheduler towers: " + text),
            std::string::npos)
      << plan.events[0];
  EXPECT_NE(describe(plan).find("note: " + plan.events[0]), std::string::npos) << describe(plan);
  EXPECT_TRUE(is_program_order(plan.schedule));
}

TEST(OrderTasks, TakesTheSchedulersOrderWhereItFits) {
  Backend backend;
  TowerScheduler greedy({1, 1, 1, 1});
  const auto plan = plan_with(backend, greedy, 0);
  EXPECT_EQ(plan->schedule.lanes.size(), 4u);
  EXPECT_TRUE(plan->events.empty());
  EXPECT_LT(plan->schedule.predicted_ns, plan->schedule.sequential_ns);
  EXPECT_EQ(greedy.limits, std::vector<int64_t>{0});
}

TEST(OrderTasks, TellsTheSchedulerWhatTheLimitLeaves) {
  Backend backend;
  const Sizes sizes = sizes_of(backend);
  TowerScheduler greedy({1, 1, 1, 1});
  const int64_t left = 1 << 20;  // five leading digits: a rung
  plan_with(backend, greedy, sizes.rest + left);
  EXPECT_EQ(greedy.limits, std::vector<int64_t>{left});
}

TEST(OrderTasks, AnOrderOverTheLimitIsPutAsideWithTheReason) {
  Backend backend;
  const Sizes sizes = sizes_of(backend);
  TowerScheduler greedy({1, 1, 1, 1});
  const auto plan = plan_with(backend, greedy, sizes.rest + sizes.arena[4] - 1);
  EXPECT_EQ(plan->memory.arena, sizes.arena[1]);
  expect_event(*plan, "over the memory limit: its order on 4 streams takes an arena of ");
  EXPECT_NE(plan->events[0].find(std::to_string(sizes.arena[4]) + " bytes"), std::string::npos);
  EXPECT_NE(plan->events[0].find(std::to_string(sizes.arena[4] - 1) + " bytes"), std::string::npos);
  toy::expect_sound(*plan);
}

TEST(OrderTasks, AsksAgainForAnOrderThatNeedsLess) {
  Backend backend;
  const Sizes sizes = sizes_of(backend);
  // It thinks that 4 streams do with half of what their arena takes.
  TowerScheduler hopeful({1, sizes.arena[2] / 2, INT64_MAX, sizes.arena[4] / 2});
  const auto plan = plan_with(backend, hopeful, sizes.rest + sizes.arena[4] - 1);
  EXPECT_EQ(plan->schedule.lanes.size(), 2u);
  EXPECT_LE(plan->memory.total(), sizes.rest + sizes.arena[4] - 1);
  EXPECT_TRUE(plan->events.empty());
  EXPECT_GT(hopeful.limits.size(), 2u);
  EXPECT_TRUE(std::is_sorted(hopeful.limits.rbegin(), hopeful.limits.rend()));
}

TEST(OrderTasks, AHigherLimitNeverLeadsToASlowerOrder) {
  Backend backend;
  const Sizes sizes = sizes_of(backend);
  int64_t before = INT64_MAX;
  for (int64_t arena = sizes.arena[1] / 2; arena < 2 * sizes.arena[4]; arena += 777) {
    TowerScheduler hopeful({1, sizes.arena[2] / 2, INT64_MAX, sizes.arena[4] / 2});
    const auto plan = plan_with(backend, hopeful, sizes.rest + arena);
    EXPECT_LE(plan->schedule.predicted_ns, before) << "limit of the arena " << arena;
    before = plan->schedule.predicted_ns;
    EXPECT_LE(plan->memory.arena, std::max(arena, sizes.arena[1]));
  }
}

TEST(OrderTasks, ASchedulerThatDeclinesTheLimitIsBelieved) {
  Backend backend;
  TowerScheduler picky({1 << 30, 1 << 30, 1 << 30, 1 << 30});
  expect_event(*plan_with(backend, picky, 1 << 28), "not enough for one stream");
}

TEST(OrderTasks, NamesTheDeviceWithOneStream) {
  Backend backend({.name = "narrow", .max_streams = 1});
  TowerScheduler greedy({1, 1, 1, 1});
  expect_event(*plan_with(backend, greedy, 0), "device narrow has one stream");
  EXPECT_TRUE(greedy.limits.empty());
}

TEST(OrderTasks, ADeviceThatRunsNothingLimitsNoStreams) {
  Backend backend, narrow({.name = "narrow", .max_streams = 1});
  TowerScheduler greedy({1, 1, 1, 1});
  PlanRequest request;
  request.scheduler = greedy.scheduler.table();
  request.devices = {narrow.device()};
  const Graph graph = towers();
  EXPECT_EQ(toy::planned(graph, backend, std::move(request))->schedule.lanes.size(), 4u);
}

TEST(OrderTasks, APlanOfOtherShapesKeepsTheLimitToo) {
  Backend backend;
  const Graph graph = towers(Dim::symbol("batch"));
  TowerScheduler greedy({1, 1, 1, 1});
  PlanRequest request;
  request.scheduler_name = "towers";
  request.scheduler = greedy.scheduler.table();
  request.bindings = {{"batch", 64}};
  const int64_t large = toy::planned(graph, backend, request)->memory.total();
  request.bindings = {{"batch", 8}};
  request.memory_limit = large - 1;
  const auto small = toy::planned(graph, backend, request);
  EXPECT_EQ(small->schedule.lanes.size(), 4u);
  const auto other = rebind(*small, {{"batch", 48}});
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ((*other)->schedule.lanes.size(), 4u);
  EXPECT_GT((*other)->schedule.sequential_ns, small->schedule.sequential_ns);
  const auto over = rebind(*small, {{"batch", 64}});
  ASSERT_TRUE(over.ok()) << over.status().message();
  expect_event(**over, "over the memory limit: its order on 4 streams takes an arena of ");
  EXPECT_LT((*over)->memory.total(), large);
}

TEST(OrderTasks, ReorderedForAReasonItSaysSo) {
  Backend backend;
  TowerScheduler greedy({1, 1, 1, 1});
  const auto plan = plan_with(backend, greedy, 0);
  const auto other = in_program_order(*plan, "scheduler towers: too wide");
  ASSERT_TRUE(other.ok()) << other.status().message();
  expect_event(**other, "too wide");
  EXPECT_LT((*other)->memory.arena, plan->memory.arena);
}

}  // namespace
}  // namespace gradrack
