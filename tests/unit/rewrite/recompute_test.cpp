// SPDX-License-Identifier: Apache-2.0
// Recomputation: what is cloned, where, and what it waits for.
#include "core/rewrite/recompute.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "core/rewrite/simplify.hpp"

namespace gradrack {
namespace {

/// Stages "a", "b", "c" of tanh(x @ w) each, with dropout in "b", and the gradients of all weights.
Graph three_stages(int passes = 1) {
  Graph graph;
  Emitter e(graph);
  Value input;
  input.source = Source::kInput;
  input.name = "x";
  input.type = {GR_FLOAT32, {Dim(4), Dim(8)}};
  ValueId x = *graph.add_source(std::move(input));
  std::vector<ValueId> weights;
  for (const char* stage : {"a", "b", "c"}) {
    EXPECT_TRUE(graph.push_stage(stage).ok());
    Value weight;
    weight.source = Source::kParameter;
    weight.name = std::string("w.") + stage;
    weight.type = {GR_FLOAT32, {Dim(8), Dim(8)}};
    weights.push_back(*graph.add_source(std::move(weight)));
    x = e.op("Tanh", {e.matmul(x, weights.back())});
    if (stage[0] == 'b') {
      const Attrs attrs{{"ratio", 0.5}, {"stream", graph.next_random_stream()}};
      x = e.multi("gradrack", "Dropout", {x, graph.rng()}, attrs, 2)[0];
    }
    EXPECT_TRUE(graph.pop_stage().ok());
  }
  for (int k = 0; k < passes; ++k) {
    const ValueId loss = e.reduce_sum(e.mul(e.mul(x, x), k + 1.5), {0, 1}, false);
    EXPECT_TRUE(
        graph.add_objective("loss" + std::to_string(k), loss, e.constant(GR_FLOAT32, 1)).ok());
  }
  std::vector<Seed> seeds;
  for (int k = 0; k < passes; ++k) {
    seeds.push_back([k](Emitter& emitter, const Objective& o) {
      return o.name == "loss" + std::to_string(k) ? emitter.like(o.sum, 1.0)
                                                  : static_cast<ValueId>(GR_NO_VALUE);
    });
  }
  const auto gradients = differentiate(graph, weights, seeds);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  for (int k = 0; k < passes; ++k) {
    for (size_t w = 0; w < weights.size(); ++w) {
      const std::string name = "g" + std::to_string(k) + std::to_string(w);
      EXPECT_TRUE(graph.add_output(name, (*gradients)[size_t(k)].of[w]).ok());
    }
  }
  return *simplify(graph);
}

Recomputed forgetting_all(const Graph& graph) {
  auto made = recompute(graph, forget_blocks(forward_blocks(graph)));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<size_t>& nodes) {
  std::vector<std::string> names;
  for (const size_t k : nodes) {
    names.push_back(graph.stage_name(graph.nodes()[k].stage) + " " +
                    graph.nodes()[k].op->full_name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Recompute, BlocksAreTheStagesWithABackwardPass) {
  const Graph graph = three_stages();
  const std::vector<ForwardBlock> blocks = forward_blocks(graph);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(graph.stage_name(blocks[0].begins), "a");
  EXPECT_EQ(graph.stage_name(blocks[2].begins), "c");
  EXPECT_EQ(forget_blocks(blocks).size(), 2u);
}

TEST(Recompute, ClonesWhatBackwardReadsAndWhatThatNeeds) {
  const Graph graph = three_stages();
  const Recomputed made = forgetting_all(graph);
  // The product of b is needed for its tanh; dropout for its mask alone, so its tanh for the slope.
  EXPECT_EQ(names_of(graph, made.cloned),
            (std::vector<std::string>{"a Tanh", "a gradrack.FusedMatMul", "b Tanh",
                                      "b gradrack.Dropout", "b gradrack.FusedMatMul"}));
}

TEST(Recompute, ClonesComeAfterTheGradientThatTheyWaitFor) {
  const Recomputed made = forgetting_all(three_stages());
  size_t waits = 0;
  for (const Node& node : made.graph.nodes()) {
    if (node.op->full_name() != "gradrack.After") continue;
    ++waits;
    const int32_t gradient = made.graph.value(node.inputs[1]).node;
    ASSERT_GE(gradient, 0);
    EXPECT_EQ(made.graph.nodes()[size_t(gradient)].kind, GR_KIND_INPUT_GRADIENT);
  }
  EXPECT_EQ(waits, 2u);  // one a stage
}

TEST(Recompute, SimplifyKeepsClonesApart) {
  const Recomputed made = forgetting_all(three_stages());
  SimplifyReport report;
  const auto again = simplify(made.graph, &report);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(report.merged, 0u);
  EXPECT_EQ(again->nodes().size(), made.graph.nodes().size());
}

TEST(Recompute, RandomNodesKeepTheirStream) {
  const Recomputed made = forgetting_all(three_stages());
  std::vector<int64_t> streams;
  for (const Node& node : made.graph.nodes()) {
    if (node.op->full_name() == "gradrack.Dropout") streams.push_back(node.attrs.get_int("stream"));
  }
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0], streams[1]);
}

TEST(Recompute, ForwardNodesStayAsTheyAre) {
  const Graph graph = three_stages();
  const Recomputed made = forgetting_all(graph);
  const auto forward = [](const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& node) { return node.kind == GR_KIND_FORWARD; });
  };
  EXPECT_EQ(forward(made.graph), forward(graph));
}

TEST(Recompute, EachPassOfSeveralObjectivesMakesItsOwn) {
  const Graph graph = three_stages(2);
  // The slopes of tanh are the same in both passes, so the second reads none of the products.
  EXPECT_EQ(forgetting_all(graph).cloned.size(), forgetting_all(three_stages(1)).cloned.size() + 3);
}

TEST(Recompute, AStretchOfBlocksRunsFromItsStart) {
  const Graph graph = three_stages();
  const std::vector<ForwardBlock> blocks = forward_blocks(graph);
  Forget forget{blocks[1].begins, blocks[0].nodes};
  forget.nodes.insert(forget.nodes.end(), blocks[1].nodes.begin(), blocks[1].nodes.end());
  std::sort(forget.nodes.begin(), forget.nodes.end());
  const auto made = recompute(graph, {forget});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->cloned.size(), forgetting_all(graph).cloned.size());
  size_t waits = 0;  // both stages' clones hang on one product at the start
  for (const Node& node : made->graph.nodes()) waits += node.op->full_name() == "gradrack.After";
  EXPECT_EQ(waits, 1u);
}

TEST(Recompute, AnUnexpandedDropoutIsNotForgotten) {
  Graph graph;
  Emitter e(graph);
  Value input;
  input.source = Source::kInput;
  input.name = "x";
  input.type = {GR_FLOAT32, {Dim(4)}};
  const ValueId x = *graph.add_source(std::move(input));
  ASSERT_TRUE(graph.push_stage("a").ok());
  (void)e.op("Dropout", {x, e.constant(GR_FLOAT32, 0.5), e.constant(GR_BOOL, 1)});
  (void)e.op("Exp", {x});
  ASSERT_TRUE(e.status().ok()) << e.status().message();
  EXPECT_FALSE(may_forget(graph, graph.nodes()[0]));
  EXPECT_TRUE(may_forget(graph, graph.nodes()[1]));
}

}  // namespace
}  // namespace gradrack
