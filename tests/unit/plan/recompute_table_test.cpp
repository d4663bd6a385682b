// SPDX-License-Identifier: Apache-2.0
// The chain of a decoder's step: its figures, what is chosen for it, and how long that takes.
#include "core/plan/recompute_table.hpp"

#include <gtest/gtest.h>

#include <ctime>

#include "core/rewrite/simplify.hpp"
#include "tests/support/decoder_graph.hpp"

namespace gradrack {
namespace {

const Bindings kSizes = {{"batch", 2}, {"time", 16}};

Graph decoder(int64_t layers) {
  toy::DecoderOptions options;
  options.layers = layers;
  return *simplify(toy::decoder_graph(options));
}

BoundGraph bound_of(const Graph& graph) {
  auto bound = bind_graph(graph, kSizes);
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  return std::move(*bound);
}

TEST(RecomputeTable, BlocksOfOneKindHaveEqualFigures) {
  const Graph graph = decoder(4);
  const BoundGraph bound = bound_of(graph);
  const RecomputeTable table = recompute_table(bound);
  ASSERT_EQ(table.chain.size(), 4u);
  for (size_t b = 1; b < 3; ++b) {
    EXPECT_EQ(table.chain[b].boundary_bytes, 2 * 16 * 8 * 4);  // x of the next block
    EXPECT_EQ(table.chain[b].options[0].kept_bytes, table.chain[1].options[0].kept_bytes);
    EXPECT_EQ(table.chain[b].forward_cost, table.chain[1].forward_cost);
  }
}

TEST(RecomputeTable, OptionsKeepLessAndLessForMoreAndMore) {
  const Graph graph = decoder(3);
  const BoundGraph bound = bound_of(graph);
  const RecomputeTable table = recompute_table(bound);
  for (const ChainBlock& block : table.chain) {
    ASSERT_GE(block.options.size(), 2u);
    EXPECT_EQ(block.options[0].extra_cost, 0);
    for (size_t k = 1; k < block.options.size(); ++k) {
      EXPECT_LT(block.options[k].kept_bytes, block.options[k - 1].kept_bytes);
      EXPECT_GE(block.options[k].extra_cost, block.options[k - 1].extra_cost);
      EXPECT_LE(block.options[k].extra_cost, block.forward_cost);
    }
  }
}

TEST(RecomputeTable, ForgettingLowersTheLivePeakTowardsTheBudget) {
  const Graph graph = decoder(12);
  const BoundGraph bound = bound_of(graph);
  const RecomputeTable table = recompute_table(bound);
  const ChainSolver solver(table.chain, table.peak_bytes);
  ASSERT_TRUE(solver.least_bytes().has_value());
  for (int64_t k = 0; k < 20; ++k) {
    const int64_t least = *solver.least_bytes();
    const int64_t budget = least + (table.peak_bytes - least) * k / 19;
    const std::optional<ChainPlan> plan = solver.solve(budget);
    ASSERT_TRUE(plan.has_value());
    const auto made = recompute(graph, forgets_of(table, *plan));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LE(live_peak_bytes(bound_of(made->graph)), budget);
    EXPECT_EQ(made->cloned.empty(), plan->extra_cost == 0);
  }
}

TEST(RecomputeTable, AThousandNodesTakeNoMoreThanASecond) {
  int64_t layers =
      1000 / static_cast<int64_t>(decoder(2).nodes().size() - decoder(1).nodes().size());
  const Graph graph = decoder(layers + 1);
  ASSERT_GE(graph.nodes().size(), 1000u);
  const BoundGraph bound = bound_of(graph);
  const std::clock_t start = std::clock();  // of the processor: other programs run too
  const RecomputeTable table = recompute_table(bound);
  const ChainSolver solver(table.chain, table.peak_bytes);
  const std::optional<ChainPlan> plan = solver.solve(*solver.least_bytes());
  ASSERT_TRUE(plan.has_value());
  ASSERT_TRUE(recompute(graph, forgets_of(table, *plan)).ok());
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

TEST(RecomputeTable, ManyStagesAreMerged) {
  const Graph graph = decoder(100);
  const BoundGraph bound = bound_of(graph);
  const RecomputeTable table = recompute_table(bound);
  EXPECT_EQ(table.blocks.size(), ChainSolver::kMostBlocks);
  size_t nodes = 0, all = 0;
  for (const ForwardBlock& block : table.blocks) nodes += block.nodes.size();
  for (const ForwardBlock& block : forward_blocks(graph)) all += block.nodes.size();
  EXPECT_EQ(nodes, all);
}

TEST(RecomputeTable, CountsClonesByStage) {
  const Graph graph = decoder(3);
  const BoundGraph bound = bound_of(graph);
  const auto made = recompute(graph, forget_blocks(forward_blocks(graph)));
  ASSERT_TRUE(made.ok());
  const RecomputeCost cost = cost_of_clones(bound, made->cloned);
  ASSERT_EQ(cost.stages.size(), 2u);  // not the last one
  EXPECT_EQ(cost.stages[0].second + cost.stages[1].second, cost.nodes);
  EXPECT_GT(cost.flops, 0);
  EXPECT_LT(cost.flops, cost.step_flops / 2);
}

}  // namespace
}  // namespace gradrack
