// SPDX-License-Identifier: Apache-2.0
// Gated units: which activations backward makes again.
#include "core/rewrite/remake_gates.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

ValueId input(Graph& graph, const std::string& name) {
  Value value;
  value.source = Source::kInput;
  value.name = name;
  value.type = {GR_FLOAT32, {Dim(3)}};
  return *graph.add_source(std::move(value));
}

std::vector<std::string> ops_of(const Graph& graph, int32_t kind) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) {
    if (node.kind == kind) ops.push_back(node.op->full_name());
  }
  return ops;
}

/// m = f(g) u and what backward makes of dm; `slope`: the gradient of f is read as well.
Graph gated_unit(const std::string& f, bool slope = true) {
  Graph graph;
  const ValueId g = input(graph, "g"), u = input(graph, "u"), dm = input(graph, "dm");
  Emitter e(graph);
  const ValueId s = e.op(f, {g}, {});
  EXPECT_TRUE(graph.add_output("m", e.mul(s, u)).ok());
  graph.set_kind(GR_KIND_INPUT_GRADIENT);
  const ValueId ds = e.mul(dm, u);
  EXPECT_TRUE(graph.add_output("du", e.mul(dm, s)).ok());
  EXPECT_TRUE(graph.add_output("dg", slope ? e.own(f + "Grad", {ds, g}, {}) : ds).ok());
  return graph;
}

TEST(RemakeGates, BackwardReadsAnActivationOfItsOwn) {
  for (const char* f : {"Swish", "Gelu"}) {
    const auto remade = remake_gates(gated_unit(f));
    ASSERT_TRUE(remade.ok()) << remade.status().message();
    EXPECT_EQ(ops_of(*remade, GR_KIND_FORWARD), (std::vector<std::string>{f, "Mul"}));
    EXPECT_EQ(ops_of(*remade, GR_KIND_INPUT_GRADIENT),
              (std::vector<std::string>{"Mul", f, "Mul", std::string("gradrack.") + f + "Grad"}));
    const Node& first = remade->nodes()[0];
    for (const Node& node : remade->nodes()) {
      for (const ValueId id : node.inputs) {
        EXPECT_FALSE(id == first.outputs[0] && node.kind != GR_KIND_FORWARD) << "the first is kept";
      }
    }
  }
}

TEST(RemakeGates, WhatItIsMadeFromWouldHaveToBeKeptForIt) {
  const auto remade = remake_gates(gated_unit("Swish", false));
  ASSERT_TRUE(remade.ok());
  EXPECT_EQ(ops_of(*remade, GR_KIND_INPUT_GRADIENT), (std::vector<std::string>{"Mul", "Mul"}));
}

TEST(RemakeGates, OtherReadersNeedTheFirst) {
  Graph graph = gated_unit("Swish");
  Emitter e(graph);
  graph.set_kind(GR_KIND_WEIGHT_GRADIENT);
  ASSERT_TRUE(graph.add_output("more", e.op("Neg", {graph.nodes()[0].outputs[0]}, {})).ok());
  const auto remade = remake_gates(graph);
  ASSERT_TRUE(remade.ok());
  EXPECT_EQ(remade->nodes().size(), graph.nodes().size());
}

}  // namespace
}  // namespace gradrack
