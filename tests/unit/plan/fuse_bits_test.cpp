// SPDX-License-Identifier: Apache-2.0
// Fused plans give the bits of their nodes alone: random graphs and patterns, commits, undo,
// recordings, threads, other dims, memories of their own, shared segments.
#include <gtest/gtest.h>

#include <random>

#include "core/plan/plan_class.hpp"
#include "tests/support/toy_group.hpp"
#include "tests/support/toy_run.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::pattern;

std::vector<host::GroupEntry> patterns() {
  return {pattern("halves", "a, b = Halves(x); c = Twice(a); d = Mul(b, b)"),
          pattern("update", "n = Neg(g); m = Move(w, n)", GR_PATTERN_ACROSS),
          pattern("two", "a = Add|Mul(x, y); b = Neg|Twice(a)"),
          pattern("run", "{Add, Mul, Neg, Twice, Move}")};
}

toy::BackendOptions options_with_patterns() {
  toy::BackendOptions options;
  options.groups = patterns();
  return options;
}

size_t groups_in(const Plan& plan) {
  size_t groups = 0;
  for (const PatternReport& report : plan.fusion) groups += report.groups;
  return groups;
}

TEST(FuseBits, CommitsInPlaceUndoAndRecordings) {
  const Graph graph = toy::wide_graph();
  for (const bool undo : {false, true}) {
    for (const bool record : {false, true}) {
      for (const bool threaded : {false, true}) {
        toy::BackendOptions options = options_with_patterns();
        options.threaded = threaded;
        Backend plain, backend(options);
        PlanRequest request;
        request.undo = undo;
        ExecutorOptions how;
        how.record = record;
        toy::ToyRun apart(graph, plain, request, how), fused(graph, backend, request, how);
        EXPECT_GT(groups_in(*fused.plan), 5u);
        toy::expect_sound(*fused.plan);
        EXPECT_EQ(fused.hash_after_steps(), apart.hash_after_steps()) << undo << record << threaded;
      }
    }
  }
}

TEST(FuseBits, DevicesWithMemoryOfTheirOwn) {
  const Graph graph = toy::wide_graph();
  toy::BackendOptions options = options_with_patterns();
  options.memory = GR_MEMORY_DEVICE;
  options.refused = {"Product"};
  Backend plain, device(options), host_side;
  PlanRequest request;
  request.devices = {host_side.device()};  // behind the first
  request.fallback = Fallback::kAllow;
  toy::ToyRun apart(graph, plain), fused(graph, device, request);
  EXPECT_GT(groups_in(*fused.plan), 5u);
  EXPECT_EQ(fused.hash_after_steps(), apart.hash_after_steps());
}

/// A graph of `size` random nodes, of random kinds and stages; every end is an output.
Graph random_graph(std::mt19937* engine, size_t size) {
  Builder b;
  const auto below = [&](size_t n) { return (*engine)() % n; };
  std::vector<ValueId> values = {b.input("x", {4, 4}), b.parameter("w", {4, 4}, 0.5)};
  std::vector<bool> read(2, true);
  const auto any = [&] {
    const size_t window = std::min<size_t>(values.size(), 8);
    const size_t k = values.size() - 1 - below(window);
    read[k] = true;
    return values[k];
  };
  for (size_t n = 0; n < size; ++n) {
    b.graph.set_kind(static_cast<int32_t>(below(8) == 0 ? below(4) : 0));
    if (below(6) == 0) b.graph.set_stage(b.graph.intern_stage("s" + std::to_string(below(3))));
    static const char* const kOps[] = {"Add", "Mul", "Move", "Neg", "Twice", "Halves", "Reshape"};
    const std::string op = kOps[below(std::size(kOps))];
    std::vector<ValueId> made;
    if (op == "Halves") {
      made = b.multi(op, {any()}, 2);
    } else if (op == "Reshape") {
      made = {b.op(op, {b.op("Flat", {any()}), b.op("Shape", {values[0]})})};
    } else if (op == "Neg" || op == "Twice") {
      made = {b.op(op, {any()})};
    } else {
      const ValueId first = any();
      made = {b.op(op, {first, any()})};
    }
    values.insert(values.end(), made.begin(), made.end());
    read.resize(values.size(), false);
  }
  b.write(values[1], b.op("Move", {values[1], values.back()}));
  b.output("both", b.op("Add", {values[0], values[1]}));
  for (size_t k = 2; k < values.size(); ++k) {
    if (!read[k] || below(10) == 0) b.output("o" + std::to_string(k), values[k]);
  }
  return std::move(b.graph);
}

TEST(FuseBits, RandomGraphs) {
  std::mt19937 engine(11);
  size_t groups = 0, refused = 0;
  for (int round = 0; round < 150; ++round) {
    const Graph graph = random_graph(&engine, 5 + engine() % 60);
    toy::BackendOptions options = options_with_patterns();
    std::shuffle(options.groups.begin(), options.groups.end(), engine);
    for (host::GroupEntry& group : options.groups) group.flags = engine() % 2;
    Backend plain, backend(options);
    toy::ToyRun apart(graph, plain), fused(graph, backend);
    for (const PatternReport& report : fused.plan->fusion) refused += report.refused;
    groups += groups_in(*fused.plan);
    toy::expect_sound(*fused.plan);
    ASSERT_EQ(fused.hash_after_steps(), apart.hash_after_steps()) << "round " << round;
  }
  EXPECT_GT(groups, 500u);
  EXPECT_GT(refused, 50u);
}

TEST(FuseBits, OtherDimsKeepTheGroups) {
  Builder b;
  const ValueId x = b.input("x", {Dim::symbol("n"), 2});
  b.output("out", b.op("Twice", {b.op("Neg", {b.op("Add", {x, x})})}));
  Backend backend(options_with_patterns());
  PlanRequest request;
  request.bindings = {{"n", 3}};
  const auto plan = toy::planned(b.graph, backend, request);
  auto longer = rebind(*plan, {{"n", 5}});
  ASSERT_TRUE(longer.ok()) << longer.status().message();
  EXPECT_EQ((*longer)->tasks.size(), plan->tasks.size());
  EXPECT_EQ(groups_in(**longer), groups_in(*plan));
  toy::ToyRun run(b.graph, backend, *longer);
  run.set_input("x", std::vector<float>(10, 1.5f));
  run.step();
  EXPECT_EQ(run.output("out"), std::vector<float>(10, -6.0f));
}

TEST(FuseBits, SegmentsWithEqualGroupsAreShared) {
  const Graph graph = toy::wide_graph();
  Backend backend(options_with_patterns());
  PlanRequest request;
  request.segments = std::make_shared<SegmentCache>();
  const auto first = toy::planned(graph, backend, request);
  const auto again = toy::planned(graph, backend, request);
  EXPECT_EQ(again->kernels, first->kernels);
  request.fuse.on = false;
  EXPECT_NE(toy::planned(graph, backend, request)->kernels, first->kernels);
}

}  // namespace
}  // namespace gradrack
