// SPDX-License-Identifier: Apache-2.0
// Plans in another order: measured costs reach the scheduler, bits stay, kernels are shared.
#include <gtest/gtest.h>

#include "backends/reference/kernels.hpp"
#include "core/plan/cache.hpp"
#include "tests/support/counted_backend.hpp"
#include "tests/support/decoder_graph.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::CountedBackend;
using toy::ToyRun;

/// Two streams: tasks of more than 1 ms on the second; remembers what it was asked.
struct ByCost {
  std::vector<int64_t> seen;
  uint32_t streams = 0;
  toy::Scheduler scheduler{2,
                           [this](const gr_schedule_request_t& request, uint32_t* order,
                                  uint32_t* stream, gr_error_t*) -> int32_t {
                             seen.clear();
                             streams = request.streams;
                             for (uint32_t t = 0; t < request.task_count; ++t) {
                               seen.push_back(request.tasks[t].cost_ns);
                               order[t] = t;
                               stream[t] = request.tasks[t].cost_ns > 1'000'000 ? 1 : 0;
                             }
                             return GR_OK;
                           }};
};

TEST(Reschedule, TheSchedulerSeesMeasuredCostsAndTheBitsStay) {
  const Graph graph = toy::wide_graph();
  Backend backend({.threaded = true});
  ByCost by_cost;
  ToyRun first(graph, backend,
               {.scheduler_name = "by_cost", .scheduler = by_cost.scheduler.table()});
  EXPECT_FALSE(first.plan->measured);
  std::vector<int64_t> costs(first.plan->tasks.size(), 500);
  for (size_t t = 0; t < costs.size(); t += 3) costs[t] = 2'000'000;
  const auto again = reschedule(*first.plan, costs);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE((*again)->measured);
  EXPECT_EQ(by_cost.seen, costs);
  EXPECT_EQ((*again)->schedule.scheduler, "by_cost");
  EXPECT_EQ((*again)->schedule.lanes.size(), 2u);
  EXPECT_FALSE((*again)->schedule.waits.empty());
  toy::expect_sound(**again);
  EXPECT_EQ((*again)->kernels, first.plan->kernels);
  ToyRun second(graph, backend, *again);
  EXPECT_EQ(second.hash_after_steps(), first.hash_after_steps());
  const auto plain = in_program_order(**again, "for a reason");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_TRUE((*plain)->measured);
  EXPECT_EQ((*plain)->table.tasks[0].cost_ns, costs[0]);
}

TEST(Reschedule, ProgramOrderAsksNoScheduler) {
  const Graph graph = toy::wide_graph();
  Backend backend;
  toy::Scheduler scheduler = toy::Scheduler::random(4, 3);
  ToyRun first(graph, backend, {.scheduler = scheduler.table()});
  ASSERT_GT(first.plan->schedule.lanes.size(), 1u);
  const auto plain = in_program_order(*first.plan, "to be timed");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ((*plain)->schedule.lanes.size(), 1u);
  EXPECT_TRUE(std::is_sorted((*plain)->schedule.order.begin(), (*plain)->schedule.order.end()));
  EXPECT_EQ((*plain)->schedule.fallback_reason, "to be timed");
  // And back: the class still knows the scheduler.
  const std::vector<int64_t> costs(first.plan->tasks.size(), 10);
  const auto again = reschedule(**plain, costs);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ((*again)->schedule.order, first.plan->schedule.order);
  EXPECT_EQ((*again)->schedule.lane, first.plan->schedule.lane);
  EXPECT_EQ((*again)->arena_bytes, first.plan->arena_bytes);
}

TEST(Reschedule, WrongCostsAreRefused) {
  Backend backend;
  const auto plan = toy::planned(toy::wide_graph(), backend);
  std::vector<int64_t> costs(plan->tasks.size(), 1);
  costs[1] = -5;
  const Status negative = reschedule(*plan, costs).status();
  EXPECT_EQ(negative.code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(negative.message(),
            "the cost of " + plan->table.tasks[1].name + " is -5 ns: wanted 0 or more");
  costs.pop_back();
  EXPECT_EQ(reschedule(*plan, costs).status().code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(reschedule(*plan, {}).status().code(), GR_INVALID_ARGUMENT);
}

TEST(Reschedule, PreparesNothingAndKeepsBoundDims) {
  host::KernelTable kernels;
  reference::add_all_kernels(kernels);
  toy::HostBackend inner{kernels};
  CountedBackend counted{inner.table()};
  const Graph graph = toy::decoder_graph();
  PlanRequest request;
  request.graph = &graph;
  request.bindings = {{"batch", 1}, {"time", 24}};
  request.devices = {counted.device()};
  const auto first = make_plan(request);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const auto other = rebind(**first, {{"batch", 1}, {"time", 40}});
  ASSERT_TRUE(other.ok()) << other.status().message();
  CountedBackend::forget();
  const auto again = reschedule(**other, std::vector<int64_t>((*other)->tasks.size(), 7));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(CountedBackend::prepares, 0);
  EXPECT_TRUE(CountedBackend::claimed().empty());
  EXPECT_EQ((*again)->memory.text(), (*other)->memory.text());
  EXPECT_TRUE(toy::run_decoder(*again, graph, counted.device()) ==
              toy::run_decoder(*other, graph, counted.device()));
}

TEST(Reschedule, TheCacheGivesWhatStandsInForAPlan) {
  const Graph graph = toy::wide_graph();
  Backend backend;
  PlanCache cache;
  const PlanKey key({.program = "step"}), other({.program = "other"});
  const auto build = [&]() -> PlanCache::Answer { return toy::planned(graph, backend); };
  const auto first = cache.get(key, build);
  ASSERT_TRUE(first.ok());
  const auto again = reschedule(**first, std::vector<int64_t>((*first)->tasks.size(), 7));
  ASSERT_TRUE(again.ok());
  cache.replace(key, *again);
  cache.replace(other, *again);  // nothing is held there
  EXPECT_EQ(*cache.get(key, build), *again);
  ASSERT_TRUE(cache.get(other, build).ok());
  EXPECT_EQ(cache.statistics().builds, 2);
}

}  // namespace
}  // namespace gradrack
