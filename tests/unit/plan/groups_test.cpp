// SPDX-License-Identifier: Apache-2.0
// Groups: convex proposals are taken, others are split with a reason; the order stays legal.
#include "core/plan/groups.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"
#include "core/plan/plan.hpp"
#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;

struct Formed {
  std::vector<NodeGroup> groups;
  std::vector<std::string> events;
};

/// `proposal[k]` is the group number of node k.
Formed form(const Graph& graph, const std::vector<int32_t>& proposal) {
  Backend backend;
  auto lowered = lower(graph, {}, {backend.device()}, Fallback::kStrict);
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  for (size_t k = 0; k < proposal.size(); ++k) lowered->claims[k].group = proposal[k];
  auto bound = bind_graph(lowered->graph, {});
  EXPECT_TRUE(bound.ok());
  Formed out;
  out.groups = form_groups(*lowered, *bound, &out.events);
  return out;
}

TEST(Groups, TakesAChain) {
  Builder b;
  b.output("y", b.op("Neg", {b.op("Twice", {b.op("Neg", {b.input("x", {2})})})}));
  const Formed formed = form(b.graph, {-1, 4, 4});
  EXPECT_EQ(formed.groups, (std::vector<NodeGroup>{{0}, {1, 2}}));
  EXPECT_TRUE(formed.events.empty());
}

TEST(Groups, SplitsWhatLeavesAndComesBack) {
  Builder b;
  const ValueId first = b.op("Neg", {b.input("x", {2})});
  b.output("y", b.op("Add", {first, b.op("Twice", {first})}));
  const Formed formed = form(b.graph, {0, -1, 0});
  EXPECT_EQ(formed.groups, (std::vector<NodeGroup>{{0}, {1}, {2}}));
  ASSERT_EQ(formed.events.size(), 1u);
  EXPECT_NE(formed.events[0].find("a group of 2 nodes from Neg on"), std::string::npos);
}

TEST(Groups, SplitsWhatComesBackThroughAView) {
  Builder b;
  b.output("y", b.op("Neg", {b.op("Flat", {b.op("Neg", {b.input("x", {2, 2})})})}));
  EXPECT_EQ(form(b.graph, {0, -1, 0}).events.size(), 1u);
}

TEST(Groups, DoNotWaitForTheDeadMakerOfAViewsShape) {
  Graph graph;  // of the built-in operators, for Shape and Reshape
  Value x;
  x.source = Source::kInput;
  x.name = "x";
  x.type = {GR_FLOAT32, {2, 3}};
  const ValueId input = *graph.add_source(std::move(x));
  Emitter e(graph);
  const ValueId y = e.op("Reshape", {e.neg(input), e.shape_of(input)});
  ASSERT_TRUE(graph.add_output("y", e.neg(y)).ok());
  ASSERT_TRUE(e.status().ok()) << e.status().message();
  EXPECT_EQ(form(graph, {}).groups.size(), 2u);  // the two Neg; Shape and Reshape need no kernel
}

TEST(Groups, TwoGroupsThatNeedEachOtherAreNotBothTaken) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId a = b.op("Neg", {x}), c = b.op("Neg", {x});
  b.output("p", b.op("Twice", {a}));
  b.output("q", b.op("Twice", {c}));
  // {0, 3} makes a and q; {1, 2} makes c and p: each needs the other.
  const Formed formed = form(b.graph, {0, 1, 1, 0});
  EXPECT_EQ(formed.groups, (std::vector<NodeGroup>{{1}, {0, 3}, {2}}));
  EXPECT_EQ(formed.events.size(), 1u);
}

TEST(Groups, ReadersOfAGroupComeAfterAllOfIt) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId first = b.op("Neg", {x});
  b.output("early", b.op("Twice", {first}));
  b.output("y", b.op("Add", {first, x}));
  EXPECT_EQ(form(b.graph, {0, -1, 0}).groups, (std::vector<NodeGroup>{{0, 2}, {1}}));
}

/// Stands in for a backend that fuses: proposes one group and records what prepare is asked.
struct Fusing {
  static inline gr_backend_t* inner = nullptr;
  static inline uint32_t nodes = 0, inputs = 0, outputs = 0;

  static int32_t claim(void* self, const gr_node_view_t* views, uint32_t stride, uint32_t count,
                       gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) {
    const int32_t code = inner->claim(self, views, stride, count, claims, claim_stride, err);
    for (uint32_t k = 0; k < count; ++k) claims[k].group = 1;
    return code;
  }
  static int32_t prepare(void*, const gr_group_t* group, gr_kernel_t**, gr_kernel_info_t*,
                         gr_error_t* err) {
    nodes = group->node_count;
    inputs = group->input_count;
    outputs = group->output_count;
    return gr_fail(err, GR_UNSUPPORTED, "", "recorded");
  }
};

TEST(Groups, AKernelSeesTheBorderOfItsGroupAlone) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId inner = b.op("Neg", {x});         // read inside only
  const ValueId shown = b.op("Add", {inner, x});  // read inside, and an output
  b.output("shown", shown);
  b.output("y", b.op("Mul", {shown, inner}));
  Backend backend;
  gr_backend_t table = *backend.table();
  Fusing::inner = backend.table();
  table.claim = Fusing::claim;
  table.prepare = Fusing::prepare;
  auto device = Device::make("fusing", &table);
  ASSERT_TRUE(device.ok());
  PlanRequest request;
  request.graph = &b.graph;
  request.devices = {device->get()};
  const Status status = make_plan(request).status();
  EXPECT_EQ(status.message(), "backend fusing: prepare Neg: recorded");
  EXPECT_EQ(Fusing::nodes, 3u);
  EXPECT_EQ(Fusing::inputs, 1u);
  EXPECT_EQ(Fusing::outputs, 2u);
}

}  // namespace
}  // namespace gradrack
