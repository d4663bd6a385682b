// SPDX-License-Identifier: Apache-2.0
// Structure of the backward graph: absent gradients, dX and dW marks, fixed order, refusals. That
// the numbers are right is checked against finite differences in tests/grad.
#include "core/autodiff/autodiff.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

ValueId source(Graph& graph, Source kind, const std::string& name, Shape shape,
               gr_dtype_t dtype = GR_FLOAT32) {
  Value value;
  value.source = kind;
  value.name = name;
  value.type = {dtype, std::move(shape)};
  return *graph.add_source(std::move(value));
}

/// Sum of all elements as the objective, with a count of one.
void objective(Graph& graph, ValueId value) {
  Emitter e(graph);
  std::vector<int64_t> axes;
  for (size_t k = 0; k < e.rank(value); ++k) axes.push_back(static_cast<int64_t>(k));
  const ValueId sum = e.reduce_sum(value, axes, false);
  const ValueId count = e.like(sum, 1.0);
  ASSERT_TRUE(e.status().ok()) << e.status().message();
  ASSERT_TRUE(graph.add_objective("loss", sum, count).ok());
}

size_t count_kind(const Graph& graph, std::string_view op, int32_t kind) {
  size_t n = 0;
  for (const Node& node : graph.nodes()) n += node.op->name == op && node.kind == kind ? 1 : 0;
  return n;
}

TEST(Autodiff, GradientOfUnreadParameterIsAbsentNotZero) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim(4)});
  const ValueId used = source(graph, Source::kParameter, "used", {Dim(4)});
  const ValueId unused = source(graph, Source::kParameter, "unused", {Dim(4)});
  objective(graph, Emitter(graph).mul(x, used));
  auto grads = differentiate(graph, {used, unused});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  EXPECT_NE(grads->of[0], GR_NO_VALUE);
  EXPECT_EQ(grads->of[1], GR_NO_VALUE);
}

TEST(Autodiff, TwoLayersGiveOneInputGradientAndTwoWeightGradientGemms) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim::symbol("batch"), Dim(3)});
  const ValueId w1 = source(graph, Source::kParameter, "w1", {Dim(3), Dim(5)});
  const ValueId w2 = source(graph, Source::kParameter, "w2", {Dim(5), Dim(2)});
  Emitter e(graph);
  objective(graph, e.matmul(e.op("Tanh", {e.matmul(x, w1)}), w2));
  auto grads = differentiate(graph, {w1, w2});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  // The batch itself needs no gradient, so the first layer has no dX.
  EXPECT_EQ(count_kind(graph, "FusedMatMul", GR_KIND_INPUT_GRADIENT), 1u);
  EXPECT_EQ(count_kind(graph, "FusedMatMul", GR_KIND_WEIGHT_GRADIENT), 2u);
}

TEST(Autodiff, ASumOfGradientsBelongsToTheStageOfItsValue) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim(4), Dim(3)});
  const ValueId w = source(graph, Source::kParameter, "w", {Dim(3), Dim(3)});
  const ValueId heads[] = {source(graph, Source::kParameter, "a", {Dim(3), Dim(3)}),
                           source(graph, Source::kParameter, "b", {Dim(3), Dim(3)})};
  Emitter e(graph);
  graph.set_stage(graph.intern_stage("trunk"));
  const ValueId h = e.op("Tanh", {e.matmul(x, w)});
  graph.set_stage(graph.intern_stage("heads.a"));
  const ValueId a = e.matmul(h, heads[0]);
  graph.set_stage(graph.intern_stage("heads.b"));
  const ValueId b = e.matmul(h, heads[1]);
  graph.set_stage(-1);
  objective(graph, e.add(a, b));
  ASSERT_TRUE(differentiate(graph, {w}).ok());
  std::vector<std::string> sums;
  for (const Node& node : graph.nodes()) {
    const bool sum = node.op->name == "Add" && node.kind == GR_KIND_INPUT_GRADIENT;
    if (sum) sums.push_back(graph.stage_name(node.stage));
  }
  EXPECT_EQ(sums, (std::vector<std::string>{"trunk"}));
}

TEST(Autodiff, WeightReachedThroughAnotherNodeStaysAWeightGradient) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim::symbol("batch"), Dim(3)});
  const ValueId w = source(graph, Source::kParameter, "w", {Dim(5), Dim(3)});
  Emitter e(graph);
  objective(graph, e.matmul(x, e.transpose(w, {1, 0})));
  auto grads = differentiate(graph, {w});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  // The gradient of the product depends on the batch; what leads from there to w does not.
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "FusedMatMul" && node.op->name != "Transpose") continue;
    EXPECT_NE(node.kind, GR_KIND_INPUT_GRADIENT) << node.op->name;
  }
  EXPECT_EQ(graph.value(grads->of[0]).type, graph.value(graph.find_source("w")).type);
}

TEST(Autodiff, BackwardNodesBelongToTheStageOfTheirForwardNode) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim(2)});
  const ValueId w = source(graph, Source::kParameter, "w", {Dim(2)});
  ASSERT_TRUE(graph.push_stage("blocks").ok());
  ASSERT_TRUE(graph.push_stage("0").ok());
  const ValueId y = Emitter(graph).mul(x, w);
  ASSERT_TRUE(graph.pop_stage().ok());
  ASSERT_TRUE(graph.pop_stage().ok());
  objective(graph, y);
  auto grads = differentiate(graph, {w});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  const Node& node = graph.nodes()[static_cast<size_t>(graph.value(grads->of[0]).node)];
  EXPECT_EQ(graph.stage_name(node.stage), "blocks.0");
}

TEST(Autodiff, SameGraphGivesSameBackwardText) {
  const auto build = [] {
    Graph graph;
    const ValueId x = source(graph, Source::kInput, "x", {Dim(2), Dim(2)});
    const ValueId w = source(graph, Source::kParameter, "w", {Dim(2), Dim(2)});
    Emitter e(graph);
    objective(graph, e.add(e.matmul(x, w), e.mul(w, w)));
    auto grads = differentiate(graph, {w});
    EXPECT_TRUE(grads.ok());
    return dump(graph);
  };
  EXPECT_EQ(build(), build());
}

TEST(Autodiff, NoPathThroughIntegersOrComparisons) {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim(4)});
  const ValueId w = source(graph, Source::kParameter, "w", {Dim(4)});
  Emitter e(graph);
  objective(graph, e.cast(e.op("Greater", {x, w}), GR_FLOAT32));
  auto grads = differentiate(graph, {w});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  EXPECT_EQ(grads->of[0], GR_NO_VALUE);
}

/// Objectives "a" = sum(x w) and "b" = sum(x v): w is read by the first alone, v by the second.
Graph two_objectives() {
  Graph graph;
  const ValueId x = source(graph, Source::kInput, "x", {Dim(4)});
  Emitter e(graph);
  for (const auto& [objective, parameter] : {std::pair{"a", "w"}, std::pair{"b", "v"}}) {
    const ValueId p = source(graph, Source::kParameter, parameter, {Dim(4)});
    const ValueId sum = e.reduce_sum(e.op("Tanh", {e.mul(x, p)}), {0}, false);
    EXPECT_TRUE(graph.add_objective(objective, sum, e.like(sum, 1.0)).ok());
  }
  return graph;
}

Seed seed_of(const std::string& name) {
  return [name](Emitter& e, const Objective& o) {
    return o.name == name ? e.like(o.sum, 1.0) : static_cast<ValueId>(GR_NO_VALUE);
  };
}

TEST(Autodiff, PassFromOneObjectiveLeavesTheOthersGradientsAbsent) {
  Graph graph = two_objectives();
  const std::vector<ValueId> wrt = {graph.find_source("w"), graph.find_source("v")};
  auto passes = differentiate(graph, wrt, {seed_of("b"), seed_of("a")});
  ASSERT_TRUE(passes.ok()) << passes.status().message();
  EXPECT_EQ((*passes)[0].of[0], GR_NO_VALUE);
  EXPECT_NE((*passes)[0].of[1], GR_NO_VALUE);
  EXPECT_NE((*passes)[1].of[0], GR_NO_VALUE);
  EXPECT_EQ((*passes)[1].of[1], GR_NO_VALUE);
}

// A later pass must not take the marks of an earlier one away.
TEST(Autodiff, EveryPassMarksItsOwnNodes) {
  Graph one = two_objectives();
  Graph both = one;
  const std::vector<ValueId> wrt = {one.find_source("w"), one.find_source("v")};
  auto joint = differentiate(one, wrt);
  auto passes = differentiate(both, wrt, {seed_of("a"), seed_of("b")});
  ASSERT_TRUE(joint.ok() && passes.ok());
  for (const int32_t kind : {GR_KIND_INPUT_GRADIENT, GR_KIND_WEIGHT_GRADIENT}) {
    EXPECT_EQ(count_kind(one, "Mul", kind), count_kind(both, "Mul", kind)) << kind;
  }
  EXPECT_GT(count_kind(both, "Mul", GR_KIND_INPUT_GRADIENT), 0u);
}

}  // namespace
}  // namespace gradrack
