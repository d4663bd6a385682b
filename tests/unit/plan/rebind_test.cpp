// SPDX-License-Identifier: Apache-2.0
// Re-binding: other lengths of one graph without a build, with the bits of a plan made afresh.
#include <gtest/gtest.h>

#include "backends/reference/kernels.hpp"
#include "core/plan/cache.hpp"
#include "core/plan/segment_cache.hpp"
#include "tests/support/counted_backend.hpp"
#include "tests/support/decoder_graph.hpp"

namespace gradrack {
namespace {

using toy::CountedBackend;

host::KernelTable reference_kernels() {
  host::KernelTable table;
  reference::add_all_kernels(table);
  return table;
}

class RebindTest : public ::testing::Test {
 protected:
  RebindTest() {
    cache.listen([this](const Event& event) { events.push_back(event); });
  }

  PlanRequest request(const Graph& graph, int64_t time) {
    PlanRequest made;
    made.graph = &graph;
    made.bindings = {{"batch", 1}, {"time", time}};
    made.devices = {counted.device()};
    return made;
  }

  /// Through the cache: built for the first length, bound for the others.
  PlanCache::Answer cached(const Graph& graph, int64_t time) {
    const PlanRequest made = request(graph, time);
    const PlanKey key(
        {.program = "step", .shapes = "tokens int64[1, " + std::to_string(time) + "]"});
    return cache.get(
        key,
        [&] {
          ++built;
          return make_plan(made);
        },
        &made.bindings);
  }

  /// Expects the bound plan of each length to be the fresh one, in bits and in bytes.
  void expect_as_fresh(const Graph& graph, const std::vector<int64_t>& lengths) {
    for (const int64_t time : lengths) {
      CountedBackend::forget();
      const auto plan = cached(graph, time);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      EXPECT_EQ(CountedBackend::claimed().empty(), time != lengths[0]);
      const auto fresh = make_plan(request(graph, time));
      ASSERT_TRUE(fresh.ok()) << fresh.status().message();
      EXPECT_EQ((*plan)->memory.text(), (*fresh)->memory.text());
      EXPECT_EQ((*plan)->schedule.order, (*fresh)->schedule.order);
      const auto bytes = toy::run_decoder(*plan, graph, counted.device());
      EXPECT_FALSE(bytes.empty());
      EXPECT_TRUE(bytes == toy::run_decoder(*fresh, graph, counted.device())) << time;
    }
    EXPECT_EQ(built, 1);
    EXPECT_EQ(cache.statistics().builds, 1);
    EXPECT_EQ(cache.statistics().rebinds, static_cast<int64_t>(lengths.size()) - 1);
  }

  toy::HostBackend inner{reference_kernels()};
  CountedBackend counted{inner.table()};
  PlanCache cache;
  int built = 0;
  std::vector<Event> events;
};

TEST_F(RebindTest, ServesLengthsNotSeenBeforeWithoutABuild) {
  const Graph graph = toy::decoder_graph({.layers = 1, .dim = 2, .heads = 1, .training = false});
  expect_as_fresh(graph, {512, 2000, 8000});
}

TEST_F(RebindTest, ServesTrainingSteps) {
  const Graph graph = toy::decoder_graph();
  expect_as_fresh(graph, {24, 40, 96, 7});
}

TEST_F(RebindTest, SharesKernelsWhoseDimsStay) {
  const Graph graph = toy::decoder_graph();
  const auto first = cached(graph, 24);
  ASSERT_TRUE(first.ok());
  const auto second = cached(graph, 40);
  ASSERT_TRUE(second.ok());
  CountedBackend::forget();
  const auto again = rebind(**second, {{"batch", 1}, {"time", 24}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(CountedBackend::prepares, 0);
  EXPECT_EQ((*again)->kernels, (*first)->kernels);
}

TEST_F(RebindTest, BuildsAfreshWhereABackendRefusesTheShapes) {
  const Graph graph = toy::decoder_graph();
  ASSERT_TRUE(cached(graph, 24).ok());
  int refusals = 0;
  CountedBackend::refuse = [&](const gr_group_t&) { return ++refusals == 1; };
  const auto plan = cached(graph, 40);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(built, 2);
  EXPECT_EQ(cache.statistics().rebinds, 0);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].kind, "plan_rebuild");
  EXPECT_EQ(events[1].level, Level::kWarn);
  EXPECT_NE(events[1].message.find("(shapes: tokens int64[1, 24] != tokens int64[1, 40])"),
            std::string::npos)
      << events[1].message;
  EXPECT_NE(events[1].message.find("not these shapes"), std::string::npos) << events[1].message;
  EXPECT_EQ(events[2].kind, "plan_miss");
}

TEST_F(RebindTest, StrictAllowsAnotherLengthButNoBuild) {
  const Graph graph = toy::decoder_graph();
  ASSERT_TRUE(cached(graph, 24).ok());
  cache.set_strict(true);
  EXPECT_TRUE(cached(graph, 40).ok());
  CountedBackend::refuse = [](const gr_group_t&) { return true; };
  const Status status = cached(graph, 48).status();
  EXPECT_EQ(status.code(), GR_FAILED_PRECONDITION);
  EXPECT_NE(status.message().find("not these shapes"), std::string::npos) << status.message();
  EXPECT_EQ(built, 1);
}

TEST_F(RebindTest, OtherErrorsAreNoReasonToBuild) {
  const Graph graph = toy::decoder_graph();
  const auto first = cached(graph, 24);
  ASSERT_TRUE(first.ok());
  const Status status = rebind(**first, {{"batch", 1}}).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("time"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace gradrack
