// SPDX-License-Identifier: Apache-2.0
// Which variants of the step a run needs: all that its steps can ask for, and no other.
#include "core/train/variants.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

constexpr ObjectiveSet kBox = 1, kPoint = 2, kBoth = 3;

Graph model() {
  Graph graph;
  Emitter e(graph);
  const ValueId one = e.constant(GR_FLOAT32, 1.0);
  EXPECT_TRUE(graph.add_objective("box", one, one).ok());
  EXPECT_TRUE(graph.add_objective("point", one, one).ok());
  return graph;
}

const std::vector<ParameterFacts> kParameters = {{"stem.weight", "heads.box", {2, 2}},
                                                 {"stem.bias", "heads.box", {2}},
                                                 {"trunk.weight", "trunk", {2, 2}}};

RunSection run_of(int64_t steps, int64_t accumulate = 1) {
  RunSection run;
  run.max_steps = steps;
  run.accumulate_steps = accumulate;
  return run;
}

std::vector<std::string> names(const RunSection& run, const std::vector<ObjectiveSet>& sets) {
  auto rules = RunRules::make(run, model(), kParameters);
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  auto variants = step_variants(*rules, run, sets, {});
  EXPECT_TRUE(variants.ok()) << variants.status().message();
  std::vector<std::string> out;
  for (const StepVariant& v : *variants) {
    out.push_back(std::string(shape_name(v.shape)) + " " + std::to_string(v.active) + " after " +
                  std::to_string(v.earlier) + " in " + std::to_string(v.stretch));
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(Variants, OneObjectiveSetAndMicrobatchIsOneVariant) {
  EXPECT_EQ(names(run_of(100), {kBoth}), (Names{"step 3 after 0 in 0"}));
}

TEST(Variants, EachSetOfTheDataIsOne) {
  EXPECT_EQ(names(run_of(100), {kBoth, kBox}),
            (Names{"step 1 after 0 in 0", "step 3 after 0 in 0"}));
}

TEST(Variants, TurnsThatDoNotComeAreNotPlanned) {
  RunSection run = run_of(5);
  run.objectives = {{"point", 1, 7, {}}};
  EXPECT_EQ(names(run, {kBoth}), (Names{"step 1 after 0 in 0"}));
  run.max_steps = 7;
  EXPECT_EQ(names(run, {kBoth}), (Names{"step 1 after 0 in 0", "step 3 after 0 in 0"}));
}

TEST(Variants, MicrobatchesOfTwoNeedFirstAndLast) {
  EXPECT_EQ(names(run_of(9, 2), {kBoth}),
            (Names{"first microbatch 3 after 0 in 0", "last microbatch 3 after 3 in 0"}));
}

TEST(Variants, ManyMicrobatchesNeedOneInBetween) {
  const Names three = names(run_of(9, 3), {kBoth});
  EXPECT_EQ(three.size(), 3u);
  EXPECT_EQ(names(run_of(9, 1000), {kBoth}), three);
}

TEST(Variants, MicrobatchesMeetEveryUnionOfEarlierSets) {
  // first: 2 sets; last: after box, point; box or point now.
  EXPECT_EQ(names(run_of(9, 2), {kBox, kPoint}).size(), 2u + 4u);
  // next: as last of two; last: after box, point, both.
  EXPECT_EQ(names(run_of(9, 3), {kBox, kPoint}).size(), 2u + 4u + 6u);
  EXPECT_EQ(names(run_of(9, 50), {kBox, kPoint}).size(), 2u + 6u + 6u);
}

TEST(Variants, FreezingBeginsAStretch) {
  RunSection run = run_of(10);
  run.freeze = {{{"*.bias"}, "", 5, {}, "run.freeze.0"}};
  EXPECT_EQ(names(run, {kBoth}), (Names{"step 3 after 0 in 0", "step 3 after 0 in 1"}));
  run.max_steps = 4;  // it never comes
  EXPECT_EQ(names(run, {kBoth}), (Names{"step 3 after 0 in 0"}));
}

TEST(Variants, StepWithoutAnActiveObjectiveIsRefused) {
  RunSection run = run_of(10);
  run.objectives = {{"box", 1, 2, {}}, {"point", 1, 3, {}}};
  auto rules = RunRules::make(run, model(), kParameters);
  ASSERT_TRUE(rules.ok());
  const Status status = step_variants(*rules, run, {kBoth}, {}).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("step 1: a batch with box, point has no active objective"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace gradrack
