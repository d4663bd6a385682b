// SPDX-License-Identifier: Apache-2.0
// The precision pass: storage dtype, casts where nodes differ, constants keep their digits.
#include "core/precision/retype.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

/// Stores float32; computes every node named `wide` in float64, the others in `plain`.
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
  ASSERT_EQ(graph.nodes().size(), 3u);
  EXPECT_EQ(graph.nodes()[1].op->name, "Cast");
  EXPECT_EQ(graph.value(graph.find_output("y")).type.dtype, GR_FLOAT64);
}

}  // namespace
}  // namespace gradrack
