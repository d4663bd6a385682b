// SPDX-License-Identifier: Apache-2.0
// Where patterns match, what is refused and why, and what plans make of groups.
#include "core/plan/fuse.hpp"

#include <gtest/gtest.h>

#include "core/plan/key.hpp"
#include "core/plan/plan_class.hpp"
#include "tests/support/toy_group.hpp"
#include "tests/support/toy_run.hpp"

namespace gradrack {
namespace {

using host::GroupEntry;
using host::GroupSpec;
using toy::Backend;
using toy::Builder;
using toy::pattern;

Backend backend_with(std::vector<GroupEntry> groups) {
  toy::BackendOptions options;
  options.groups = std::move(groups);
  return Backend(std::move(options));
}

/// The groups of a plan, "name: 0 2", by statement, in the order of tasks.
std::vector<std::string> groups_of(const Plan& plan) {
  std::vector<std::string> out;
  for (const TaskOutline& task : plan.plan_class->tasks) {
    if (task.pattern() == 0) continue;
    std::string text = task.match.name + ":";
    for (const size_t node : task.match.nodes) text += " " + std::to_string(node);
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;

/// x, y of shape [2]; the last value is the output.
struct Chain {
  Chain() : x(b.input("x", {2})), y(b.input("y", {2})) {}
  Builder b;
  ValueId x, y;
};

TEST(Fuse, AChainIsOneTaskWithTheResultsOfItsNodes) {
  Chain c;
  c.b.output("out", c.b.op("Neg", {c.b.op("Add", {c.x, c.y})}));
  Backend backend = backend_with({pattern("add_neg", "h = Add(a, b); n = Neg(h)")});
  toy::ToyRun run(c.b.graph, backend);
  EXPECT_EQ(groups_of(*run.plan), (Texts{"add_neg: 0 1"}));
  ASSERT_EQ(run.plan->tasks.size(), 1u);
  EXPECT_EQ(run.plan->table.tasks[0].name, "add_neg of 2 nodes (node 0)");
  run.set_input("x", {1, 2});
  run.set_input("y", {10, 20});
  run.step();
  EXPECT_EQ(run.output("out"), (std::vector<float>{-11, -22}));
}

/// -(a + b) without scratch.
class NegativeSum final : public host::Kernel {
 public:
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const auto *a = static_cast<const float*>(in[0]->data), *b = static_cast<float*>(in[1]->data);
    for (int64_t i = 0; i < in[0]->shape[0]; ++i)
      static_cast<float*>(out[0]->data)[i] = -a[i] - b[i];
    return GR_OK;
  }
};

TEST(Fuse, ValuesInsideTakeNoArenaAndNoTraffic) {
  Builder b;
  const ValueId x = b.input("x", {1000}), y = b.input("y", {1000});
  b.output("out", b.op("Neg", {b.op("Add", {x, y})}));
  GroupEntry group = pattern("p", "h = Add(a, b); n = Neg(h)");
  group.make = [](const GroupSpec&) { return std::make_unique<NegativeSum>(); };
  Backend plain, backend = backend_with({group});
  const auto apart = toy::planned(b.graph, plain);
  const auto fused = toy::planned(b.graph, backend);
  EXPECT_GT(apart->memory.arena, 0);
  EXPECT_EQ(fused->memory.arena, 0);
  EXPECT_EQ(fused->table.tasks[0].flops, 2000);
  EXPECT_EQ(fused->table.tasks[0].bytes_moved, 12000);
}

TEST(Fuse, CommutativeOperatorsMatchEitherWay) {
  Chain c;
  const ValueId n = c.b.op("Neg", {c.x});
  c.b.output("out", c.b.op("Mul", {c.y, n}));
  c.b.output("more", c.b.op("Move", {c.y, c.b.op("Neg", {c.y})}));
  Backend backend = backend_with({pattern("mul", "n = Neg(x); m = Mul|Move(n, y)")});
  EXPECT_EQ(groups_of(*toy::planned(c.b.graph, backend)), (Texts{"mul: 0 1"}));
}

TEST(Fuse, OneNameIsOneValue) {
  Chain c;
  c.b.output("no", c.b.op("Add", {c.b.op("Neg", {c.x}), c.y}));
  c.b.output("yes", c.b.op("Add", {c.b.op("Neg", {c.x}), c.x}));
  Backend backend = backend_with({pattern("p", "n = Neg(x); s = Add(n, x)")});
  EXPECT_EQ(groups_of(*toy::planned(c.b.graph, backend)), (Texts{"p: 2 3"}));
}

TEST(Fuse, SharedInputsJoinStatements) {
  Chain c;
  c.b.output("a", c.b.op("Neg", {c.x}));
  c.b.output("b", c.b.op("Twice", {c.y}));
  c.b.output("c", c.b.op("Twice", {c.x}));
  Backend backend = backend_with({pattern("both", "a = Neg(x); b = Twice(x)")});
  EXPECT_EQ(groups_of(*toy::planned(c.b.graph, backend)), (Texts{"both: 0 2"}));
}

TEST(Fuse, ResultsThatMayBeThereOrNot) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const auto halves = b.multi("Halves", {x}, 2);
  b.output("out", b.op("Neg", {halves[0]}));
  const auto groups = [&](const char* expression) {
    Backend backend = backend_with({pattern("p", expression)});
    return groups_of(*toy::planned(b.graph, backend)).size();
  };
  EXPECT_EQ(groups("h = Halves(x); n = Neg(h)"), 0u);
  EXPECT_EQ(groups("h, _ = Halves(x); n = Neg(h)"), 1u);
  EXPECT_EQ(groups("h, ... = Halves(x); n = Neg(h)"), 1u);
  EXPECT_EQ(groups("h, q, _ = Halves(x); n, _ = Neg(h)"), 1u);
  EXPECT_EQ(groups("_, h = Halves(x); n = Neg(h)"), 0u);
  EXPECT_EQ(groups("h, ... = Halves(x, y); n = Neg(h)"), 0u);
  EXPECT_EQ(groups("h, ... = Halves(...); n = Neg(h, _)"), 1u);
}

TEST(Fuse, WhatIsReadOutsideIsAResult) {
  Chain c;
  const ValueId h = c.b.op("Add", {c.x, c.y});
  c.b.output("out", c.b.op("Neg", {h}));
  c.b.output("h", h);
  Backend backend = backend_with({pattern("p", "h = Add(a, b); n = Neg(h)")});
  toy::ToyRun run(c.b.graph, backend);
  EXPECT_EQ(run.plan->tasks.size(), 1u);
  run.set_input("x", {1, 2});
  run.set_input("y", {3, 4});
  run.step();
  EXPECT_EQ(run.output("h"), (std::vector<float>{4, 6}));
  EXPECT_EQ(run.output("out"), (std::vector<float>{-4, -6}));
}

/// What became of the only pattern.
PatternReport report_of(const Graph& graph, GroupEntry group) {
  Backend backend = backend_with({std::move(group)});
  const auto plan = toy::planned(graph, backend);
  toy::expect_sound(*plan);
  EXPECT_EQ(plan->fusion.size(), 1u);
  return plan->fusion[0];
}

TEST(Fuse, WhatLeavesAndComesBackIsRefused) {
  Chain c;
  const ValueId n = c.b.op("Neg", {c.x});
  c.b.output("out", c.b.op("Add", {n, c.b.op("Twice", {n})}));
  const PatternReport report = report_of(c.b.graph, pattern("p", "n = Neg(x); s = Add(n, y)"));
  EXPECT_EQ(report.text(),
            "toy p: no group; 1 refused (what it makes is needed outside it before it ends)");
}

TEST(Fuse, KindsAndStagesAreNotMixedButAcross) {
  for (const bool stages : {false, true}) {
    Chain c;
    const ValueId n = c.b.op("Neg", {c.x});
    if (stages) {
      c.b.graph.set_stage(c.b.graph.intern_stage("later"));
    } else {
      c.b.graph.set_kind(GR_KIND_INPUT_GRADIENT);
    }
    c.b.output("out", c.b.op("Add", {n, c.y}));
    const char* const expression = "n = Neg(x); s = Add(n, y)";
    const PatternReport apart = report_of(c.b.graph, pattern("p", expression));
    EXPECT_EQ(apart.groups, 0u);
    EXPECT_EQ(apart.reason,
              stages ? "Neg and Add are not in one stage" : "Neg and Add are not of one kind");
    EXPECT_EQ(report_of(c.b.graph, pattern("p", "{Neg, Add}")).groups, 0u);
    EXPECT_EQ(report_of(c.b.graph, pattern("p", "{Neg, Add}", GR_PATTERN_ACROSS)).groups, 1u);
    Backend backend = backend_with({pattern("p", expression, GR_PATTERN_ACROSS)});
    const auto plan = toy::planned(c.b.graph, backend);
    ASSERT_EQ(plan->tasks.size(), 1u);
    EXPECT_EQ(plan->table.tasks[0].kind,
              stages ? int{GR_KIND_FORWARD} : int{GR_KIND_INPUT_GRADIENT});
  }
}

TEST(Fuse, AGroupHasTheKindThatOthersWaitFor) {
  Builder b;
  const ValueId x = b.input("x", {2});
  ValueId y = x;
  const int32_t kinds[] = {GR_KIND_FORWARD, GR_KIND_INPUT_GRADIENT, GR_KIND_WEIGHT_GRADIENT,
                           GR_KIND_UPDATE};
  for (const int32_t kind : kinds) {
    b.graph.set_kind(kind);
    y = b.op("Neg", {y});
  }
  EXPECT_EQ(leading_node(b.graph, {0}), 0u);
  EXPECT_EQ(leading_node(b.graph, {0, 1, 2, 3}), 1u);
  EXPECT_EQ(leading_node(b.graph, {0, 2}), 2u);
  EXPECT_EQ(leading_node(b.graph, {0, 2, 3}), 3u);
}

TEST(Fuse, EarlierPatternsWinAndANodeIsInOneGroup) {
  Chain c;
  const ValueId h = c.b.op("Add", {c.x, c.y});
  c.b.output("out", c.b.op("Twice", {c.b.op("Neg", {h})}));
  const GroupEntry first = pattern("first", "n = Neg(x); t = Twice(n)");
  const GroupEntry second = pattern("second", "h = Add(x, y); n = Neg(h)");
  Backend one = backend_with({first, second}), other = backend_with({second, first});
  EXPECT_EQ(groups_of(*toy::planned(c.b.graph, one)), (Texts{"first: 1 2"}));
  EXPECT_EQ(groups_of(*toy::planned(c.b.graph, other)), (Texts{"second: 0 1"}));
}

TEST(Fuse, PlacesGoInTheOrderOfTheGraph) {
  Builder b;
  ValueId y = b.input("x", {2});
  for (int k = 0; k < 5; ++k) y = b.op("Neg", {y});
  b.output("out", y);
  Backend backend = backend_with({pattern("two", "a = Neg(x); b = Neg(a)")});
  EXPECT_EQ(groups_of(*toy::planned(b.graph, backend)), (Texts{"two: 0 1", "two: 2 3"}));
}

TEST(Fuse, AGroupIsNoWayBackIntoAnother) {
  Builder b;
  const ValueId x = b.input("x", {2}), y = b.input("y", {2});
  const ValueId a = b.op("Neg", {x});    // 0
  const ValueId c = b.op("Twice", {y});  // 1
  b.output("p", b.op("Move", {c, a}));   // 2: reads both
  b.output("q", b.op("Mul", {a, c}));    // 3: reads both
  // {0, 2} and {1, 3}: the first needs c, the second a.
  Backend backend = backend_with({pattern("first", "a = Neg(x); p = Move(c, a)"),
                                  pattern("second", "c = Twice(x); q = Mul(c, a)")});
  const auto plan = toy::planned(b.graph, backend);
  EXPECT_EQ(groups_of(*plan), (Texts{"first: 0 2"}));
  EXPECT_EQ(plan->fusion[1].refused, 1u);
  toy::expect_sound(*plan);
}

TEST(Fuse, RunsGrowAsFarAsTheyGo) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId n = b.op("Neg", {x});                // 0
  const ValueId s = b.op("Add", {n, x});             // 1
  const ValueId t = b.op("Twice", {s});              // 2: not of the set
  const ValueId m = b.op("Mul", {s, n});             // 3
  b.output("out", b.op("Add", {m, t}));              // 4: comes back through 2
  b.output("sum", b.op("Neg", {b.op("Sum", {m})}));  // 6: alone
  Backend backend = backend_with({pattern("run", "{Add, Neg, Mul}")});
  EXPECT_EQ(groups_of(*toy::planned(b.graph, backend)), (Texts{"run: 0 1 3"}));
}

TEST(Fuse, RunsHaveOneShapeAsWritten) {
  Builder b;
  const ValueId x = b.input("x", {Dim::symbol("n"), Dim::symbol("m")});
  b.output("out", b.op("Neg", {b.op("Flat", {b.op("Neg", {b.op("Neg", {x})})})}));
  Backend backend = backend_with({pattern("run", "{Neg, Twice}")});
  PlanRequest request;
  request.bindings = {{"n", 1}, {"m", 1}};
  EXPECT_EQ(groups_of(*toy::planned(b.graph, backend, request)), (Texts{"run: 0 1"}));
}

TEST(Fuse, ARunThatIsRefusedIsTakenAsFarAsItMayGo) {
  Builder b;
  ValueId y = b.input("x", {2});
  for (const char* op : {"Neg", "Twice", "Neg", "Neg"}) y = b.op(op, {y});
  b.output("out", y);
  const auto two = [](const GroupSpec& group) {
    return group.nodes.size() <= 2 ? std::string() : std::string("more than two nodes");
  };
  const PatternReport report = report_of(b.graph, pattern("run", "{Neg, Twice}", 0, two));
  EXPECT_EQ(report.groups, 2u);
  EXPECT_EQ(report.nodes, 4u);
  EXPECT_EQ(report.reason, "more than two nodes");
  const auto none = [](const GroupSpec&) { return std::string("never"); };
  EXPECT_EQ(report_of(b.graph, pattern("run", "{Neg, Twice}", 0, none)).text(),
            "toy run: no group; 1 refused (never)");
}

TEST(Fuse, ClaimsSeeTheBorderAndDecide) {
  Chain c;
  c.b.output("out", c.b.op("Neg", {c.b.op("Add", {c.x, c.y})}));
  const auto claim = [](const GroupSpec& group) {
    EXPECT_EQ(group.inputs.size(), 2u);
    EXPECT_EQ(group.outputs.size(), 1u);
    EXPECT_EQ(group.output(group.nodes[0].outputs[0].id), -1);
    return std::string("not today");
  };
  EXPECT_EQ(report_of(c.b.graph, pattern("p", "h = Add(x, y); n = Neg(h)", 0, claim)).text(),
            "toy p: no group; 1 refused (not today)");
}

TEST(Fuse, PatternsLookThroughViews) {
  Builder b;
  const ValueId x = b.input("x", {2, 2});
  const ValueId n = b.op("Neg", {x});       // 0
  const ValueId flat = b.op("Flat", {n});   // 1
  b.output("flat", b.op("Twice", {flat}));  // 2
  b.output("out", b.op("Neg", {flat}));     // 3
  Backend backend = backend_with({pattern("p", "n = Neg(x); m = Neg(n)")});
  toy::ToyRun run(b.graph, backend);
  EXPECT_EQ(groups_of(*run.plan), (Texts{"p: 0 3"}));
  EXPECT_EQ(run.plan->table.tasks[0].name, "p of 2 nodes (node 0)");
  run.set_input("x", {1, 2, 3, 4});
  run.step();
  EXPECT_EQ(run.output("flat"), (std::vector<float>{-2, -4, -6, -8}));
  EXPECT_EQ(run.output("out"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Fuse, ViewsOfOneValueAreOneInput) {
  Builder b;
  const ValueId x = b.input("x", {2, 2});
  b.output("a", b.op("Neg", {b.op("Flat", {x})}));
  b.output("b", b.op("Twice", {b.op("Flat", {x})}));
  const auto claim = [](const GroupSpec& group) {
    EXPECT_EQ(group.inputs.size(), 1u);
    EXPECT_EQ(group.nodes[0].inputs[0].id, group.nodes[1].inputs[0].id);
    EXPECT_EQ(group.nodes[0].inputs[0].dims, (std::vector<int64_t>{4}));
    return std::string();
  };
  EXPECT_EQ(report_of(b.graph, pattern("p", "a = Neg(x); b = Twice(x)", 0, claim)).groups, 1u);
  EXPECT_EQ(report_of(b.graph, pattern("p", "f = Flat(x); b = Twice(f)")).text(),
            "toy p: no group (Flat is a view, and patterns look through views)");
}

TEST(Fuse, CanBeSwitchedOffWholeOrByPattern) {
  Chain c;
  c.b.output("out", c.b.op("Twice", {c.b.op("Neg", {c.b.op("Add", {c.x, c.y})})}));
  Backend backend = backend_with({pattern("first", "n = Neg(x); t = Twice(n)"),
                                  pattern("second", "h = Add(x, y); n = Neg(h)")});
  PlanRequest request;
  request.fuse.on = false;
  EXPECT_TRUE(toy::planned(c.b.graph, backend, request)->fusion.empty());
  EXPECT_EQ(request.fuse.text(), "false");
  request.fuse = {true, {"first"}};
  const auto plan = toy::planned(c.b.graph, backend, request);
  EXPECT_EQ(groups_of(*plan), (Texts{"second: 0 1"}));
  EXPECT_EQ(describe(plan->fusion),
            "fusion: 2 nodes in 1 groups\n  toy first: left out\n"
            "  toy second: 1 group of 2 nodes\n");
  EXPECT_EQ(request.fuse.text(), "all but first");
}

/// The error of planning a graph with these patterns.
std::string error_with(std::vector<GroupEntry> groups, FuseSwitch wanted = {}) {
  Chain c;
  c.b.output("out", c.b.op("Neg", {c.x}));
  Backend backend = backend_with(std::move(groups));
  PlanRequest request;
  request.graph = &c.b.graph;
  request.devices = {backend.device()};
  request.fuse = std::move(wanted);
  return make_plan(request).status().message();
}

TEST(Fuse, ErrorsNameTheBackendAndThePattern) {
  EXPECT_EQ(error_with({pattern("good", "a = Neg(x); b = Neg(a)"), pattern("bad", "a = Neg(x)")}),
            "backend toy: pattern 1 ('bad'): expression \"a = Neg(x)\": at character 11 (the end): "
            "wanted two statements or more");
  const GroupEntry p = pattern("p", "a = Neg(x); b = Neg(a)");
  EXPECT_EQ(error_with({p, p}), "backend toy: pattern 1 ('p'): pattern 0 has the same name");
  EXPECT_EQ(error_with({pattern("", "{Neg}")}), "backend toy: pattern 0 (''): it has no name");
  EXPECT_NE(error_with({pattern("a b", "{Neg}")}).find("wanted letters, digits and '_'"),
            std::string::npos);
  EXPECT_NE(error_with({pattern("true", "{Neg}")}).find("means something else in a run file"),
            std::string::npos);
  EXPECT_NE(error_with({p}, {true, {"q"}})
                .find("backend.fuse leaves out 'q', and no backend of the chain has a pattern"),
            std::string::npos);
}

TEST(Fuse, AnUnknownOperatorIsToldAndMatchesNothing) {
  Chain c;
  c.b.output("out", c.b.op("Neg", {c.b.op("Neg", {c.x})}));
  EXPECT_EQ(report_of(c.b.graph, pattern("p", "a = Neg(x); b = my.Later(a)")).text(),
            "toy p: no group (there is no operator my.Later)");
  EXPECT_EQ(report_of(c.b.graph, pattern("p", "{Neg, my.Later}")).groups, 1u);
}

TEST(Fuse, IsInTheKeyOfPlans) {
  const PlanKey on({.program = "step"}), off({.program = "step", .fuse = "false"});
  EXPECT_FALSE(on == off);
  EXPECT_EQ(on.differences(off), (Texts{"fuse: true != false"}));
}

}  // namespace
}  // namespace gradrack
