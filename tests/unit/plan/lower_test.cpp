// SPDX-License-Identifier: Apache-2.0
// Lowering: who runs what along the chain, decomposition, and what each fallback setting does.
#include "core/plan/lower.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.op->name);
  return names;
}

Graph poly_graph() {
  Builder b;
  b.output("y", b.op("Poly", {b.op("Neg", {b.input("x", {3})})}));
  return std::move(b.graph);
}

TEST(Lower, DecomposesWhatADeviceRunsOnlyInParts) {
  Backend backend;  // claims primitives alone
  auto lowered = lower(poly_graph(), {}, {backend.device()}, Fallback::kStrict);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(op_names(lowered->graph), (std::vector<std::string>{"Neg", "Mul", "Add"}));
  EXPECT_EQ(lowered->summary[0].native, 1u);
  EXPECT_EQ(lowered->summary[0].decomposed, 1u);
  EXPECT_EQ(lowered->summary[0].handed_on_count(), 0u);
}

TEST(Lower, HandsOnWhatNeitherTheNodeNorItsPartsCanRun) {
  Backend first({.name = "first", .refused = {"Mul"}});
  Backend second({.name = "second"});
  auto lowered = lower(poly_graph(), {}, {first.device(), second.device()}, Fallback::kWarn);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->device, (std::vector<int32_t>{0, 1, 1}));  // Neg, then Mul and Add of Poly
  EXPECT_EQ(lowered->summary[0].native, 1u);
  EXPECT_EQ(lowered->summary[1].decomposed, 1u);
  ASSERT_EQ(lowered->warnings.size(), 1u);
  EXPECT_NE(lowered->warnings[0].find("1 Poly (no kernel for Poly; decomposed: Square"),
            std::string::npos)
      << lowered->warnings[0];
  EXPECT_NE(lowered->warnings[0].find("no kernel for Mul"), std::string::npos);
}

TEST(Lower, AllowSaysNothing) {
  Backend first({.name = "first", .refused = {"Neg"}});
  Backend second({.name = "second"});
  auto lowered = lower(poly_graph(), {}, {first.device(), second.device()}, Fallback::kAllow);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_TRUE(lowered->warnings.empty());
  EXPECT_EQ(lowered->device, (std::vector<int32_t>{1, 0, 0}));
}

TEST(Lower, StrictRefusesTheNextDevice) {
  Backend first({.name = "first", .refused = {"Neg"}});
  Backend second({.name = "second"});
  auto lowered = lower(poly_graph(), {}, {first.device(), second.device()}, Fallback::kStrict);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().code(), GR_UNSUPPORTED);
  EXPECT_NE(lowered.status().message().find("1 Neg (no kernel for Neg)"), std::string::npos)
      << lowered.status().message();
}

TEST(Lower, NamesEveryReasonWhenNobodyRunsANode) {
  Backend first({.name = "first", .refused = {"Neg"}});
  Backend second({.name = "second", .refused = {"Neg"}});
  auto lowered = lower(poly_graph(), {}, {first.device(), second.device()}, Fallback::kAllow);
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().code(), GR_UNSUPPORTED);
  for (const char* part :
       {"no backend runs Neg", "first says no kernel for Neg", "second says no kernel for Neg"}) {
    EXPECT_NE(lowered.status().message().find(part), std::string::npos)
        << lowered.status().message();
  }
}

TEST(Lower, AsksNothingAboutDeadNodesAndViews) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  b.op("Fail", {x});
  b.output("y", b.op("Flat", {x}));
  Backend backend({.refused = {"Fail", "Flat"}});
  auto lowered = lower(b.graph, {}, {backend.device()}, Fallback::kStrict);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->summary[0].native, 0u);
}

}  // namespace
}  // namespace gradrack
