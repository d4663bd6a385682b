// SPDX-License-Identifier: Apache-2.0
// The precision pass: storage dtype, casts where nodes differ, constants keep their digits.
#include "core/precision/retype.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "core/graph/emitter.hpp"
#include "gradrack/precision_inputs.h"

namespace gradrack {
namespace {

/// Stores `storage`; computes every node named `wide` in float64, the others in `plain`.
struct Policy {
  gr_dtype_t storage = GR_FLOAT32;
  gr_dtype_t plain = GR_FLOAT32;
  std::string wide;

  gr_precision_t table() {
    gr_precision_t t = {};
    t.struct_size = sizeof t;
    t.self = this;
    t.storage_dtype = [](void* self, gr_dtype_t* out, gr_error_t*) -> int32_t {
      *out = static_cast<Policy*>(self)->storage;
      return GR_OK;
    };
    t.node_dtype = [](void* self, const gr_precision_node_t* node, gr_dtype_t* out,
                      gr_error_t*) -> int32_t {
      const Policy& policy = *static_cast<Policy*>(self);
      *out = policy.wide == node->op ? static_cast<gr_dtype_t>(GR_FLOAT64) : policy.plain;
      return GR_OK;
    };
    return t;
  }
};

Graph small_graph() {
  Graph graph;
  Value value;
  value.source = Source::kParameter;
  value.name = "w";
  value.type = {GR_FLOAT32, {Dim(4)}};
  const ValueId w = *graph.add_source(std::move(value));
  Emitter e(graph);
  EXPECT_TRUE(graph.add_output("y", e.op("Exp", {e.mul(w, 0.1)})).ok());
  return graph;
}

TEST(Precision, DoubleModeRetypesEverythingAndKeepsConstantDigits) {
  Policy policy{GR_FLOAT64, GR_FLOAT64, ""};
  const Graph graph = small_graph();
  auto retyped = apply_precision(graph, policy.table());
  ASSERT_TRUE(retyped.ok()) << retyped.status().message();
  EXPECT_EQ(retyped->graph.nodes().size(), graph.nodes().size());
  for (const Value& value : retyped->graph.values()) {
    EXPECT_EQ(value.type.dtype, GR_FLOAT64);
    if (value.constant != nullptr) {
      EXPECT_EQ(value.constant->reals[0], 0.1);
    }
  }
}

TEST(Precision, CastIsInsertedWhereOneNodeIsWider) {
  Policy policy{GR_FLOAT32, GR_FLOAT32, "Exp"};
  auto retyped = apply_precision(small_graph(), policy.table());
  ASSERT_TRUE(retyped.ok()) << retyped.status().message();
  const Graph& graph = retyped->graph;
  ASSERT_EQ(graph.nodes().size(), 4u);
  EXPECT_EQ(graph.nodes()[1].op->name, "Cast");
  EXPECT_EQ(graph.value(graph.nodes()[2].outputs[0]).type.dtype, GR_FLOAT64);
}

TEST(Precision, WhatLeavesTheGraphHasTheStorageDtype) {
  Policy policy{GR_FLOAT32, GR_FLOAT32, "Exp"};
  Graph graph = small_graph();
  Emitter e(graph);
  const ValueId gradient = e.op("Exp", {graph.find_source("w")});
  ASSERT_TRUE(
      graph.add_objective("loss", e.reduce_sum(gradient, {0}, false), e.constant(GR_FLOAT32, 1.0))
          .ok());
  const ValueId gradients[] = {gradient};
  auto retyped = apply_precision(graph, policy.table(), gradients);
  ASSERT_TRUE(retyped.ok()) << retyped.status().message();
  const Graph& out = retyped->graph;
  EXPECT_EQ(out.value(out.find_output("y")).type.dtype, GR_FLOAT32);
  EXPECT_EQ(out.value(out.objectives()[0].sum).type.dtype, GR_FLOAT32);
  const ValueId image = retyped->image[static_cast<size_t>(gradient)];
  EXPECT_EQ(out.value(image).type.dtype, GR_FLOAT32);
  EXPECT_EQ(out.nodes()[static_cast<size_t>(out.value(image).node)].op->name, "Cast");
}

/// Answers by what comes in, and remembers the questions.
struct InputsPolicy {
  std::map<std::string, std::vector<gr_dtype_t>> asked;
  gr_precision_inputs_t inputs = {};

  gr_precision_t table() {
    inputs = {sizeof inputs, 0, this, node_dtype};
    gr_precision_t t = {};
    t.struct_size = sizeof t;
    t.self = this;
    t.storage_dtype = [](void*, gr_dtype_t* out, gr_error_t*) -> int32_t {
      *out = GR_FLOAT32;
      return GR_OK;
    };
    t.node_dtype = [](void*, const gr_precision_node_t*, gr_dtype_t*, gr_error_t* err) -> int32_t {
      return gr_fail(err, GR_INTERNAL, "node_dtype", "asked although the extension is there");
    };
    t.get_extension = [](void* self, const char* id) -> const void* {
      return std::string(id) == GR_EXT_PRECISION_INPUTS ? &static_cast<InputsPolicy*>(self)->inputs
                                                        : nullptr;
    };
    return t;
  }

  static int32_t node_dtype(void* self, const gr_precision_node_t* node, const gr_dtype_t* inputs,
                            uint32_t count, gr_dtype_t* out, gr_error_t*) {
    static_cast<InputsPolicy*>(self)->asked[node->op] = {inputs, inputs + count};
    *out = std::string(node->op) == "Exp" ? GR_BFLOAT16 : GR_FLOAT32;
    return GR_OK;
  }
};

TEST(Precision, ThePolicyIsToldWhatComesIn) {
  Graph graph = small_graph();  // Exp(w * 0.1)
  Emitter e(graph);
  const ValueId wide = e.cast(graph.find_source("w"), GR_FLOAT64);
  const ValueId y = graph.find_output("y");
  ASSERT_TRUE(graph.add_output("z", e.op("Where", {e.op("Less", {wide, wide}), y, y})).ok());
  InputsPolicy policy;
  auto retyped = apply_precision(graph, policy.table());
  ASSERT_TRUE(retyped.ok()) << retyped.status().message();
  using Dtypes = std::vector<gr_dtype_t>;
  EXPECT_EQ(policy.asked["Mul"], (Dtypes{0, 0}));  // a parameter and a constant
  EXPECT_EQ(policy.asked["Exp"], (Dtypes{GR_FLOAT32}));
  EXPECT_EQ(policy.asked["Less"], (Dtypes{0, 0}));  // float64 by the model's own word
  // y leaves the graph, so it comes as float32 again.
  EXPECT_EQ(policy.asked["Where"], (Dtypes{0, GR_FLOAT32, GR_FLOAT32}));
}

}  // namespace
}  // namespace gradrack
