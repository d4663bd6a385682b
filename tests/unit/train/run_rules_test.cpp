// SPDX-License-Identifier: Apache-2.0
// Rules of section `run` against a model: who is trained when, and the words of refusals.
#include "core/train/run_rules.hpp"

#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"

namespace gradrack {
namespace {

Graph model() {
  Graph graph;
  Emitter e(graph);
  const ValueId one = e.constant(GR_FLOAT32, 1.0);
  for (const char* name : {"box", "kind", "point"}) {
    EXPECT_TRUE(graph.add_objective(name, one, one).ok());
  }
  return graph;
}

const std::vector<ParameterFacts> kParameters = {{"trunk.weight", "trunk", {2, 2}},
                                                 {"box.weight", "heads.p3.box", {2, 2}},
                                                 {"box.bias", "heads.p3.box", {2}},
                                                 {"point.bias", "heads.p3.point", {2}}};

const Place kPlace = {"run.yaml", 7, 3};

RunSection run_of(std::vector<ObjectiveRule> objectives, std::vector<FreezeRule> freeze = {}) {
  RunSection run;
  run.max_steps = 100;
  run.objectives = std::move(objectives);
  run.freeze = std::move(freeze);
  return run;
}

RunRules rules_of(const RunSection& run) {
  auto rules = RunRules::make(run, model(), kParameters);
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  return rules.ok() ? *rules : RunRules();
}

std::string error_of(const RunSection& run) {
  const Status status = RunRules::make(run, model(), kParameters).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  return status.message();
}

using Names = std::vector<std::string>;

TEST(RunRules, ObjectivesNotNamedHaveWeightOneAndEveryStep) {
  const RunRules rules = rules_of(run_of({{"point", 12, 4, {}}}));
  EXPECT_EQ(rules.weights(), (std::vector<double>{1, 1, 12}));
  EXPECT_EQ(rules.active(3), 3u);
  EXPECT_EQ(rules.active(4), 7u);
  EXPECT_EQ(rules.period(1000), 4);
  EXPECT_EQ(rules.period(3), 3);
  EXPECT_EQ(rules.text(5), "box, point");
}

TEST(RunRules, OneObjectiveWithoutAWeightNeedsNoScalar) {
  Graph graph;
  Emitter e(graph);
  const ValueId one = e.constant(GR_FLOAT32, 1.0);
  ASSERT_TRUE(graph.add_objective("loss", one, one).ok());
  EXPECT_FALSE(RunRules::make(run_of({}), graph, kParameters)->weighted());
  EXPECT_TRUE(RunRules::make(run_of({{"loss", 2, 1, {}}}), graph, kParameters)->weighted());
  EXPECT_TRUE(rules_of(run_of({})).weighted());
}

TEST(RunRules, UnknownObjectiveIsNamedWithPlaceAndNearest) {
  EXPECT_EQ(error_of(run_of({{"points", 1, 1, kPlace}})),
            "run.yaml:7:3: run.objectives.points: the model has no such objective (did you mean "
            "'point'?); it has: box, kind, point");
}

TEST(RunRules, FreezeTakesWhatAllConditionsFit) {
  const RunRules rules = rules_of(run_of({}, {{{"*.bias"}, "heads.*.box", 1, {}, "run.freeze.0"},
                                              {{}, "heads.p3.point", 40, {}, "run.freeze.1"}}));
  ASSERT_EQ(rules.stretches(), 2u);
  EXPECT_EQ(rules.trained(0), (Names{"trunk.weight", "box.weight", "point.bias"}));
  EXPECT_EQ(rules.trained(1), (Names{"trunk.weight", "box.weight"}));
  EXPECT_EQ(rules.trained_text(1), "all but box.bias, point.bias");
  EXPECT_EQ(rules.stretch(1), 0u);
  EXPECT_EQ(rules.stretch(39), 0u);
  EXPECT_EQ(rules.stretch(40), 1u);
}

TEST(RunRules, FreezeThatFitsNothingNamesTheNearestStage) {
  const std::string error = error_of(run_of({}, {{{}, "heads.p3.bux", 1, kPlace, "run.freeze.0"}}));
  EXPECT_NE(error.find("run.yaml:7:3: run.freeze.0: no parameter of the model fits stage "
                       "'heads.p3.bux' (did you mean 'heads.p3.box'?)"),
            std::string::npos)
      << error;
}

TEST(RunRules, SomethingIsLeftToTrain) {
  EXPECT_NE(error_of(run_of({}, {{{"*"}, "", 9, kPlace, "run.freeze.0"}}))
                .find("no parameter is left to train from step 9"),
            std::string::npos);
}

}  // namespace
}  // namespace gradrack
