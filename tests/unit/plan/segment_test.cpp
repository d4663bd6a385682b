// SPDX-License-Identifier: Apache-2.0
// Segments: what a plan shares with others, what is asked of backends for the rest, and when it
// ends; and that bits do not depend on any of it.
#include <gtest/gtest.h>

#include <thread>

#include "core/plan/plan_class.hpp"
#include "core/plan/segment_cache.hpp"
#include "tests/support/counted_backend.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/unit/plan/staged_graph.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::CountedBackend;
using toy::staged_graph;
using Names = std::vector<std::string>;

class SegmentTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Plan> plan_of(const Graph& graph) {
    PlanRequest request;
    request.graph = &graph;
    request.devices = {counted.device()};
    request.segments = segments;
    auto made = make_plan(request);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : nullptr;
  }
  std::shared_ptr<const Plan> plan_of(toy::StagedOptions options) {
    return plan_of(staged_graph(std::move(options)));
  }

  Backend inner;
  CountedBackend counted{inner.table()};
  std::shared_ptr<SegmentCache> segments = std::make_shared<SegmentCache>();
};

TEST_F(SegmentTest, APlanIsMadeOfStagesAndDirections) {
  const auto plan = plan_of(staged_graph());
  EXPECT_EQ(plan->segment_report.count, 12u);  // four stages: forward, backward, update
  EXPECT_EQ(plan->segment_report.built.size(), 12u);
  EXPECT_TRUE(plan->segment_report.joint_built);
  EXPECT_EQ(plan->segment_report.text(),
            "segments 12: 0 reused, 12 built (trunk forward, a forward, b forward, c forward, "
            "c backward, b backward and 6 more); joint built");
}

TEST_F(SegmentTest, AnEqualPlanAsksNothing) {
  const auto first = plan_of(staged_graph());
  CountedBackend::forget();
  const auto second = plan_of(staged_graph());
  EXPECT_TRUE(CountedBackend::claimed().empty());
  EXPECT_EQ(CountedBackend::prepares, 0);
  EXPECT_EQ(second->segment_report.text(), "segments 12: 12 reused, 0 built");
  EXPECT_EQ(second->kernels, first->kernels);
}

TEST_F(SegmentTest, AStageMadeOtherwiseIsBuiltAlone) {
  const auto first = plan_of(staged_graph());
  CountedBackend::forget();
  const auto second = plan_of({.twice_in = "b"});
  EXPECT_EQ(second->segment_report.built, (Names{"b forward"}));
  EXPECT_FALSE(second->segment_report.joint_built);
  EXPECT_EQ(CountedBackend::claimed(), (Names{"Product", "Twice"}));
  EXPECT_EQ(CountedBackend::prepares, 2);
}

TEST_F(SegmentTest, OtherDimsInOneStageAreBuiltThereAlone) {
  const auto first = plan_of({.active = {"a", "b"}});
  const auto second = plan_of({.active = {"a", "b"}, .wide = "c"});
  EXPECT_EQ(second->segment_report.built, (Names{"c forward"}));
}

TEST_F(SegmentTest, FreezingAStageRebuildsItsBackwardAlone) {
  const auto first = plan_of(staged_graph());
  CountedBackend::forget();
  const auto frozen = plan_of({.trained = {"a", "c"}});
  EXPECT_EQ(frozen->segment_report.text(),
            "segments 11: 10 reused, 1 built (b backward); joint built");  // the norm: one fewer
}

TEST_F(SegmentTest, AnObjectiveThatIsNotActiveLeavesTheOtherHeadsShared) {
  const auto first = plan_of(staged_graph());
  CountedBackend::forget();
  const auto fewer = plan_of({.active = {"a", "b"}});
  EXPECT_EQ(fewer->segment_report.built, (Names{"trunk backward"}));  // one sum fewer
  EXPECT_EQ(fewer->segment_report.count, 10u);
}

TEST_F(SegmentTest, WhatNoPlanHoldsIsRetiredAndItsKernelsEnd) {
  auto first = plan_of(staged_graph());
  auto second = plan_of({.twice_in = "b"});
  const auto kernels = static_cast<int64_t>(first->kernels.size());
  EXPECT_EQ(CountedBackend::live_kernels(), kernels + 2);
  EXPECT_EQ(segments->statistics().live, 14u);
  second.reset();
  EXPECT_EQ(CountedBackend::live_kernels(), kernels);
  EXPECT_EQ(segments->statistics().live, 13u);
  EXPECT_EQ(segments->statistics().retired, 1);
  first.reset();
  EXPECT_EQ(CountedBackend::live_kernels(), 0);
  const auto again = plan_of(staged_graph());
  EXPECT_EQ(again->segment_report.built.size(), 12u);
}

TEST_F(SegmentTest, KernelsBelongToTheirDevice) {
  const auto first = plan_of(staged_graph());
  Backend other;
  const Graph graph = staged_graph();
  PlanRequest request;
  request.graph = &graph;
  request.devices = {other.device()};
  request.segments = segments;
  const auto second = make_plan(request);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ((*second)->segment_report.built.size(), 12u);
}

TEST_F(SegmentTest, GroupsNeverCrossASegment) {
  CountedBackend::one_group = true;
  const Graph graph = staged_graph();
  PlanRequest request;
  request.graph = &graph;
  request.devices = {counted.device()};
  auto made = lower_by_parts(request);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto bound = bind_graph((*made)->lowered.graph, {});
  ASSERT_TRUE(bound.ok());
  ASSERT_TRUE(outline_tasks(*bound, made->get()).ok());
  size_t largest = 0;
  for (const TaskOutline& task : (*made)->tasks) {
    largest = std::max(largest, task.nodes.size());
    const Node& first = (*made)->lowered.graph.nodes()[task.nodes[0]];
    for (const size_t k : task.nodes) {
      const Node& node = (*made)->lowered.graph.nodes()[k];
      EXPECT_EQ(node.stage, first.stage);
      EXPECT_EQ(direction_of(node.kind), direction_of(first.kind));
    }
  }
  EXPECT_GE(largest, 3u);  // a head's Product, Mul and Add
}

TEST_F(SegmentTest, PartsComeTogetherAsTheWholeWouldBeLowered) {
  for (const Graph& graph : {toy::wide_graph(), staged_graph()}) {
    auto whole = lower(graph, {}, {inner.device()}, Fallback::kStrict);
    PlanRequest request;
    request.graph = &graph;
    request.devices = {inner.device()};
    auto parts = lower_by_parts(request);
    ASSERT_TRUE(whole.ok() && parts.ok());
    const Lowered& put = (*parts)->lowered;
    ASSERT_EQ(put.graph.nodes().size(), whole->graph.nodes().size());
    for (size_t k = 0; k < put.graph.nodes().size(); ++k) {
      EXPECT_EQ(put.graph.nodes()[k].op, whole->graph.nodes()[k].op) << k;
      EXPECT_EQ(put.graph.nodes()[k].stage, whole->graph.nodes()[k].stage) << k;
      EXPECT_EQ(put.graph.nodes()[k].kind, whole->graph.nodes()[k].kind) << k;
      EXPECT_EQ(put.device[k], whole->device[k]) << k;
    }
    EXPECT_EQ(put.summary[0].text(), whole->summary[0].text());
  }
}

TEST_F(SegmentTest, SharedKernelsGiveTheBitsOfFreshOnes) {
  const Graph all = staged_graph(), graph = staged_graph({.active = {"a", "b"}});
  toy::ToyRun fresh(graph, inner);
  PlanRequest request;
  request.segments = segments;
  const toy::ToyRun other(all, inner, request);  // of which the next one takes what it can
  toy::ToyRun shared(graph, inner, request);
  EXPECT_EQ(shared.plan->segment_report.built.size(), 1u);
  EXPECT_EQ(shared.hash_after_steps(), fresh.hash_after_steps());
}

TEST_F(SegmentTest, TellsOfANodeThatNobodyRunsAsTheWholeWould) {
  Backend poor({.refused = {"Sum"}});
  const Graph graph = staged_graph();
  PlanRequest request;
  request.graph = &graph;
  request.devices = {poor.device()};
  const Status status = make_plan(request).status();
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_EQ(status.message(),
            "no backend runs Sum and 3 more nodes beside it: toy says no kernel for Sum");
}

TEST_F(SegmentTest, ThreadsBuildEachSegmentOnce) {
  for (int round = 0; round < 20; ++round) {
    segments = std::make_shared<SegmentCache>();
    CountedBackend::forget();
    std::vector<std::shared_ptr<const Plan>> plans(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < plans.size(); ++t) {
      threads.emplace_back([&, t] {
        plans[t] = plan_of(t % 2 == 0 ? toy::StagedOptions{} : toy::StagedOptions{.twice_in = "b"});
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_NE(plans[0], nullptr);
    EXPECT_EQ(CountedBackend::prepares, static_cast<int64_t>(plans[0]->kernels.size()) + 2);
    EXPECT_EQ(plans[0]->kernels, plans[2]->kernels);
  }
}

}  // namespace
}  // namespace gradrack
