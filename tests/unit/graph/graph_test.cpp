// SPDX-License-Identifier: Apache-2.0
// Graph: what making a node checks, and how it says what is wrong; the registry's own invariants.
#include "core/graph/graph.hpp"

#include <gtest/gtest.h>

#include "tests/unit/graph/shape_rig.hpp"

namespace gradrack {

using test::ShapeRig;

TEST(Graph, UnknownOperatorNamesTheNearest) {
  ShapeRig rig;
  rig.op("MatMull", {rig.x({2, 2}), rig.x({2, 2})});
  EXPECT_TRUE(rig.error_has("no operator 'MatMull'")) << rig.last_error;
  EXPECT_TRUE(rig.error_has("did you mean 'MatMul'?")) << rig.last_error;
  EXPECT_EQ(rig.last_code, GR_NOT_FOUND);
}

TEST(Graph, UnknownAttributeNamesTheNearest) {
  ShapeRig rig;
  rig.op("Gemm", {rig.x({2, 2}), rig.x({2, 2})}, {{"transa", int64_t{1}}});
  EXPECT_TRUE(rig.error_has("has no attribute 'transa'")) << rig.last_error;
  EXPECT_TRUE(rig.error_has("did you mean 'transA'?")) << rig.last_error;
}

TEST(Graph, AttributeOfAnotherTypeIsRefused) {
  ShapeRig rig;
  rig.op("Gemm", {rig.x({2, 2}), rig.x({2, 2})}, {{"alpha", int64_t{1}}});
  EXPECT_TRUE(rig.error_has("'alpha' must be a float")) << rig.last_error;
}

TEST(Graph, RequiredAttributeThatIsMissingIsNamed) {
  ShapeRig rig;
  rig.op("Concat", {rig.x({2, 2}), rig.x({2, 2})});
  EXPECT_TRUE(rig.error_has("needs attribute 'axis'")) << rig.last_error;
}

TEST(Graph, MissingInputIsNamed) {
  ShapeRig rig;
  rig.op("MatMul", {rig.x({2, 2})});
  EXPECT_TRUE(rig.error_has("needs input 'B'")) << rig.last_error;
}

TEST(Graph, ListOfInputsHasOneAndNoHoles) {
  ShapeRig rig;
  rig.op("Concat", {rig.x({2, 2}), GR_NO_VALUE, rig.x({2, 2})}, {{"axis", int64_t{0}}});
  EXPECT_TRUE(rig.error_has("needs input 'inputs'")) << rig.last_error;
  rig.op("Max", {});
  EXPECT_TRUE(rig.error_has("needs input 'data'")) << rig.last_error;
}

TEST(Graph, TooManyInputsAreRefused) {
  ShapeRig rig;
  const ValueId x = rig.x({2});
  rig.op("Neg", {x, x});
  EXPECT_TRUE(rig.error_has("takes at most 1 inputs, got 2")) << rig.last_error;
}

TEST(Graph, FailedNodeLeavesTheGraphAsItWas) {
  ShapeRig rig;
  const ValueId a = rig.x({2, 3}), b = rig.x({4});
  const size_t values = rig.graph.values().size();
  rig.op("Add", {a, b});
  EXPECT_EQ(rig.graph.values().size(), values);
  EXPECT_TRUE(rig.graph.nodes().empty());
}

TEST(Graph, ErrorShowsTheOperatorWithTheTypesItGot) {
  ShapeRig rig;
  rig.op("Add", {rig.x({Dim::symbol("batch"), 3}), rig.x({4})});
  EXPECT_TRUE(rig.error_has("Add(float32[batch, 3], float32[4])")) << rig.last_error;
  EXPECT_TRUE(rig.error_has("3 against 4")) << rig.last_error;
}

TEST(Graph, RankOverTheLimitIsRefused) {
  ShapeRig rig;
  const ValueId x = rig.x({1, 1, 1, 1, 1, 1, 1, 1});
  rig.op("Reshape", {x, rig.ints({1, 1, 1, 1, 1, 1, 1, 1, 1})});
  EXPECT_TRUE(rig.error_has("would have rank 9, the limit is 8")) << rig.last_error;
  const ValueId row = rig.x({3});
  rig.op("Expand", {row, rig.ints({1, 1, 1, 1, 1, 1, 1, 1, 3})});
  EXPECT_TRUE(rig.error_has("the limit is 8")) << rig.last_error;
}

TEST(Graph, DefaultsOfAttributesAreFilledIn) {
  ShapeRig rig;
  rig.op("Gemm", {rig.x({2, 2}), rig.x({2, 2})});
  EXPECT_EQ(rig.graph.nodes()[0].attrs.text(), "alpha=1 beta=1 transA=0 transB=0");
}

TEST(OpRegistry, SecondEntryOfANameIsRefused) {
  OpRegistry registry;
  OpDef op = *OpRegistry::builtin().find("", "Neg");
  EXPECT_TRUE(registry.add(op).ok());
  EXPECT_FALSE(registry.add(op).ok());
}

TEST(OpRegistry, EntryNeedsAKernelOrADecomposition) {
  OpRegistry registry;
  OpDef op = *OpRegistry::builtin().find("", "Gelu");
  op.decompose = {};
  EXPECT_FALSE(registry.add(op).ok());
}

TEST(OpRegistry, EveryEntryIsDocumented) {
  for (const OpDef* op : OpRegistry::builtin().all()) {
    EXPECT_GE(op->doc.size(), 6u) << op->full_name();
    EXPECT_FALSE(op->outputs.empty()) << op->full_name();
  }
}

}  // namespace gradrack
