// SPDX-License-Identifier: Apache-2.0
// Simplification: what is merged, what is dropped, what must stay.
#include "core/rewrite/simplify.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

ValueId input(Graph& graph, const std::string& name, Shape shape) {
  Value value;
  value.source = Source::kInput;
  value.name = name;
  value.type = {GR_FLOAT32, std::move(shape)};
  return *graph.add_source(std::move(value));
}

TEST(Simplify, MergesEqualNodesAndEqualConstants) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim(3)});
  Emitter e(graph);
  const ValueId y = e.add(e.mul(x, 2.0), e.mul(x, 2.0));
  ASSERT_TRUE(graph.add_output("y", y).ok());
  SimplifyReport report;
  auto simple = simplify(graph, &report);
  ASSERT_TRUE(simple.ok());
  EXPECT_EQ(report.merged, 1u);
  EXPECT_EQ(simple->nodes().size(), 2u);
}

TEST(Simplify, KeepsNodesThatDifferInAnAttribute) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim(3)});
  Emitter e(graph);
  const ValueId a = e.op("LeakyRelu", {x}, {{"alpha", 0.1}});
  const ValueId b = e.op("LeakyRelu", {x}, {{"alpha", 0.2}});
  ASSERT_TRUE(graph.add_output("y", e.add(a, b)).ok());
  SimplifyReport report;
  ASSERT_TRUE(simplify(graph, &report).ok());
  EXPECT_EQ(report.merged, 0u);
}

TEST(Simplify, CastsOfAValueAndOfItsViewsAreOne) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim(2), Dim(6)});
  Emitter e(graph);
  const ValueId a = e.reshape(e.cast(x, GR_BFLOAT16), {3, 4});
  const ValueId b = e.cast(e.reshape(x, {3, 4}), GR_BFLOAT16);
  const ValueId c = e.cast(e.reshape(e.reshape(x, {3, 4}), std::vector<int64_t>{12}), GR_BFLOAT16);
  ASSERT_TRUE(graph.add_output("y", e.add(a, b)).ok());
  ASSERT_TRUE(graph.add_output("z", c).ok());
  SimplifyReport report;
  const auto simple = simplify(graph, &report);
  ASSERT_TRUE(simple.ok()) << simple.status().message();
  size_t casts = 0;
  for (const Node& node : simple->nodes()) casts += node.op->full_name() == "Cast" ? 1 : 0;
  EXPECT_EQ(casts, 1u);
  EXPECT_EQ(to_text(simple->value(simple->find_output("z")).type), "bfloat16[12]");
  const Node& sum = simple->nodes()[size_t(simple->value(simple->find_output("y")).node)];
  EXPECT_EQ(sum.inputs[0], sum.inputs[1]);
}

TEST(Simplify, DropsWhatNobodyReads) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim(3)});
  Emitter e(graph);
  (void)e.op("Exp", {x});
  ASSERT_TRUE(graph.add_output("y", e.neg(x)).ok());
  SimplifyReport report;
  auto simple = simplify(graph, &report);
  ASSERT_TRUE(simple.ok());
  EXPECT_EQ(report.dead, 1u);
  EXPECT_EQ(simple->nodes().size(), 1u);
}

TEST(Simplify, PassesThroughReshapeToTheSameShape) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim::symbol("batch"), Dim(4)});
  Emitter e(graph);
  ASSERT_TRUE(graph.add_output("y", e.neg(e.reshape_like(x, x))).ok());
  SimplifyReport report;
  ASSERT_TRUE(simplify(graph, &report).ok());
  EXPECT_EQ(report.removed, 1u);
}

TEST(Simplify, FoldsCastOfAConstantWithoutLosingDigits) {
  Graph graph;
  const ValueId x = input(graph, "x", {Dim(1)});
  Emitter e(graph);
  const ValueId third = e.constant(GR_FLOAT64, 1.0 / 3.0);
  const ValueId y = e.mul(x, e.op("Cast", {third}, {{"to", int64_t{GR_FLOAT32}}}));
  ASSERT_TRUE(graph.add_output("y", y).ok());
  auto simple = simplify(graph);
  ASSERT_TRUE(simple.ok());
  ASSERT_EQ(simple->nodes().size(), 1u);
  const Value& constant = simple->value(simple->nodes()[0].inputs[1]);
  EXPECT_EQ(constant.type.dtype, GR_FLOAT32);
  EXPECT_EQ(constant.constant->reals[0], 1.0 / 3.0);
}

}  // namespace
}  // namespace gradrack
