// SPDX-License-Identifier: Apache-2.0
// Training with objectives that come and go: who is touched, what is planned and when, and that
// plans which are used again give the bits of plans that are made anew.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "core/train/evaluate.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

using Bytes = std::vector<std::byte>;
using Sets = std::vector<std::string>;

class Stems : public testing::TrainerFixture {
 protected:
  /// Content of every stored tensor but accumulators, by name.
  static std::map<std::string, Bytes> content(Trainer& trainer) {
    std::map<std::string, Bytes> all;
    Store& store = trainer.programs().store();
    for (const StoredTensor& tensor : store.tensors()) {
      if (tensor.source == Source::kAccumulator) continue;
      Bytes& bytes = all[tensor.name];
      bytes.resize(static_cast<size_t>(tensor.bytes));
      EXPECT_TRUE(store.read(tensor.name, bytes).ok());
    }
    return all;
  }

  /// Names of tensors whose bytes differ.
  static std::vector<std::string> changed(const std::map<std::string, Bytes>& before,
                                          const std::map<std::string, Bytes>& after) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : before) {
      if (after.at(name) != bytes) names.push_back(name);
    }
    return names;
  }

  /// Bits of each step's loss and means.
  static std::vector<uint64_t> losses(Trainer& trainer, int count) {
    std::vector<uint64_t> bits;
    for (int k = 0; k < count; ++k) {
      const auto report = trainer.step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      if (!report.ok()) return bits;
      std::vector<double> numbers = trainer.objective_means();
      numbers.push_back(report->loss);
      for (const double number : numbers) {
        uint64_t each = 0;
        std::memcpy(&each, &number, sizeof each);
        bits.push_back(each);
      }
    }
    return bits;
  }
};

TEST_F(Stems, BatchWithoutPointsLeavesThePointStemAlone) {
  const auto made = stems_trainer({"data.point_every=2"});
  ASSERT_NE(made, nullptr);
  steps(*made, 1);  // batch 0 has points
  const auto before = content(*made);
  steps(*made, 1);
  EXPECT_TRUE(std::isnan(made->objective_means()[2]));
  const auto names = changed(before, content(*made));
  size_t others = 0;
  for (const std::string& name : names) {
    EXPECT_EQ(name.find("heads.point"), std::string::npos) << name;
    EXPECT_EQ(name.find("bn.weight"), std::string::npos) << name;
    others += name.starts_with("heads.box") || name.starts_with("trunk") ? 1 : 0;
  }
  EXPECT_EQ(others, 12u);  // two tensors each with two moments
  // The forward pass is that of every batch, so running statistics follow it.
  EXPECT_NE(std::find(names.begin(), names.end(), "bn.mean"), names.end());
}

TEST_F(Stems, PlansUsedAgainGiveTheBitsOfPlansMadeAnew) {
  for (const Sets& sets : {Sets{"data.point_every=3", "run.max_grad_norm=1"},
                           Sets{"data.point_every=3", "run.accumulate_steps=3"},
                           Sets{"data.point_every=2", "run.objectives={kind: {every: 2}}",
                                "run.freeze=[{stage: heads.box, from_step: 4}]"}}) {
    const auto cached = stems_trainer(sets);
    const auto fresh = stems_trainer(sets);
    ASSERT_TRUE(cached != nullptr && fresh != nullptr);
    fresh->programs().plan_afresh();
    EXPECT_EQ(losses(*cached, 8), losses(*fresh, 8)) << sets.back();
    EXPECT_EQ(content(*cached), content(*fresh)) << sets.back();
  }
}

TEST_F(Stems, WarmUpMakesExactlyThePlansOfTheRun) {
  const auto made = stems_trainer({"data.point_every=3", "run.accumulate_steps=2",
                                   "run.objectives={kind: {every: 2}}", "run.max_steps=12",
                                   "run.freeze=[{stage: heads.box, from_step: 7}]"});
  ASSERT_NE(made, nullptr);
  PlanCache& plans = made->setup().machine->plans;
  const auto warm = plans.statistics();
  EXPECT_EQ(warm.builds, static_cast<int64_t>(made->programs().plans().size()));
  plans.set_strict(true);
  steps(*made, 12);
  const auto evaluation = evaluate(made->programs());
  EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
  EXPECT_EQ(plans.statistics().builds, warm.builds);
}

TEST_F(Stems, StrictPlansRefuseWhatTheWarmUpLacks) {
  const auto made = stems_trainer({});
  ASSERT_NE(made, nullptr);
  made->setup().machine->plans.set_strict(true);
  StepVariant variant;
  variant.active = 1;  // the data never has box alone
  const Status status = made->programs().step(variant).status();
  EXPECT_EQ(status.code(), GR_FAILED_PRECONDITION);
  EXPECT_NE(status.message().find("objectives: "), std::string::npos) << status.message();
}

TEST_F(Stems, WarmUpOfTheForwardPassNeverServesTraining) {
  const std::unique_ptr<Session> session = stems_session({});
  ASSERT_NE(session, nullptr);
  EventRecorder events(session->events);
  auto programs = Programs::make(*session);
  ASSERT_TRUE(programs.ok()) << programs.status().message();
  ASSERT_TRUE((*programs)->plan_evaluation(2).ok());
  const PlanCache& plans = (*programs)->setup().machine->plans;
  EXPECT_EQ(plans.statistics().builds, 1);
  ASSERT_TRUE((*programs)->plan_training().ok());
  EXPECT_EQ(plans.statistics().hits, 0);
  const auto misses = events.of_kind("plan_miss");
  ASSERT_GE(misses.size(), 2u);
  EXPECT_NE(misses[1].message.find("training: false != true"), std::string::npos)
      << misses[1].message;
}

TEST_F(Stems, WeightsAreNoKeysAndWeighTheLoss) {
  const auto plain = stems_trainer({});
  const auto heavy = stems_trainer({"run.objectives={box: {weight: 3}}"});
  ASSERT_TRUE(plain != nullptr && heavy != nullptr);
  EXPECT_TRUE(*plain->programs().plans()[0].key == *heavy->programs().plans()[0].key);
  const auto a = plain->step(), b = heavy->step();
  ASSERT_TRUE(a.ok() && b.ok());
  const std::vector<double>& means = heavy->objective_means();
  EXPECT_EQ(means, plain->objective_means());
  EXPECT_NEAR(a->loss, means[0] + means[1] + means[2], 1e-12);
  EXPECT_NEAR(b->loss, 3 * means[0] + means[1] + means[2], 1e-12);
}

TEST_F(Stems, FreezingAStemFromAStepOnKeepsItsBytes) {
  const auto whole = stems_trainer({});
  const auto frozen = stems_trainer({"run.freeze=[{stage: heads.box, from_step: 4}]"});
  ASSERT_TRUE(whole != nullptr && frozen != nullptr);
  frozen->setup().machine->plans.set_strict(true);
  steps(*whole, 3);
  steps(*frozen, 3);
  const auto at = content(*frozen);
  EXPECT_EQ(changed(content(*whole), at), std::vector<std::string>());
  steps(*frozen, 3);
  const auto names = changed(at, content(*frozen));
  for (const std::string& name : names) {
    EXPECT_EQ(name.find("heads.box"), std::string::npos) << name;
  }
  EXPECT_NE(std::find(names.begin(), names.end(), "trunk.weight"), names.end());
}

// dX of the stem stays, because the trunk needs it; dW goes, and with it the stem's update.
TEST_F(Stems, FreezingAStemMakesOneSegmentAnew) {
  const auto made = stems_trainer({"run.freeze=[{stage: heads.box, from_step: 4}]"});
  ASSERT_NE(made, nullptr);
  std::vector<Programs::NamedPlan> plans = made->programs().plans();
  ASSERT_EQ(plans[1].name, "step: box, kind, point, from step 4");
  const SegmentReport& report = plans[1].plan->segment_report;
  EXPECT_EQ(report.built, std::vector<std::string>{"heads.box backward"}) << report.text();
  EXPECT_EQ(report.count, plans[0].plan->segment_report.count - 1);
}

TEST_F(Stems, ObjectiveOfOneMicrobatchHasAPartInTheStep) {
  const auto made = stems_trainer({"data.point_every=2", "run.accumulate_steps=2"});
  ASSERT_NE(made, nullptr);
  const auto before = content(*made);
  const auto report = made->step();  // points in the first microbatch alone
  ASSERT_TRUE(report.ok()) << report.status().message();
  const auto names = changed(before, content(*made));
  EXPECT_NE(std::find(names.begin(), names.end(), "heads.point.weight"), names.end());
  const std::vector<double>& means = made->objective_means();
  EXPECT_NEAR(report->loss, means[0] + means[1] + means[2], 1e-12);
}

TEST_F(Stems, EvaluationCountsAnObjectiveWhereBatchesHaveIt) {
  const auto made = stems_trainer({"data.point_every=2", "run.eval_batches=0",
                                   "data.validation_items=5", "run.objectives={box: {weight: 2}}"});
  ASSERT_NE(made, nullptr);
  const auto result = evaluate(made->programs());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->batches, 3);  // of 2, 2 and 1 rows; the second has no points
  ASSERT_EQ(result->objectives.size(), 3u);
  EXPECT_GT(result->objectives[2].targets, 0);
  EXPECT_LE(result->objectives[2].targets, 3);
  EXPECT_NEAR(result->loss,
              2 * result->objectives[0].mean() + result->objectives[1].mean() +
                  result->objectives[2].mean(),
              1e-12);
}

TEST_F(Stems, BatchOfAnUndeclaredSetIsABugOfThePlugin) {
  const std::unique_ptr<Session> session = stems_session({"data.undeclared=true"});
  ASSERT_NE(session, nullptr);
  const auto made = Trainer::make(*session);  // which looks at the first batch
  EXPECT_EQ(made.status().code(), GR_INTERNAL);
  EXPECT_NE(made.status().message().find("set 7 of 1"), std::string::npos)
      << made.status().message();
}

// The plan is made for the longest; another length is bound when it comes, which is no build.
TEST_F(Stems, LengthsThatWereNotSeenAreNotBuilt) {
  const Sets sets = {"data.lengths=[3, 7, 5]", "data.point_every=2"};
  const auto made = stems_trainer(sets);
  const auto fresh = stems_trainer(sets);
  ASSERT_TRUE(made != nullptr && fresh != nullptr);
  PlanCache& plans = made->setup().machine->plans;
  const int64_t builds = plans.statistics().builds;
  plans.set_strict(true);
  fresh->programs().plan_afresh();
  EXPECT_EQ(losses(*made, 9), losses(*fresh, 9));
  EXPECT_EQ(content(*made), content(*fresh));
  EXPECT_EQ(plans.statistics().builds, builds);
  EXPECT_EQ(plans.statistics().rebinds, 4);  // lengths 3 and 5, with points and without
}

TEST_F(Stems, ManyLengthsDoNotPileUp) {
  std::string lengths = "data.lengths=[90";
  for (int length = 2; length < 90; ++length) lengths += ", " + std::to_string(length);
  const auto made = stems_trainer({lengths + "]"});
  ASSERT_NE(made, nullptr);
  steps(*made, 95);
  EXPECT_LE(made->programs().plans().size(), 2u + 32u);
  EXPECT_GT(made->programs().plans().size(), 30u);
}

TEST_F(Stems, AnnouncedBytesAreAllocatedBytes) {
  const auto made = stems_trainer({"data.point_every=2", "run.accumulate_steps=3"});
  ASSERT_NE(made, nullptr);
  steps(*made, 2);
  EXPECT_EQ(made->programs().planned_bytes(), made->programs().allocated_bytes());
}

TEST_F(Stems, StepsLeaveOutWhatOnlyPredictionsNeed) {
  const auto gpt = trainer({});
  ASSERT_NE(gpt, nullptr);
  size_t predictions = 0;
  for (const Programs::NamedPlan& each : gpt->programs().plans()) {
    const bool evaluation = each.name.rfind("evaluation", 0) == 0;
    for (const PlanPort& port : each.plan->outputs) {
      const bool own = port.name.rfind("step.", 0) == 0 || port.name.rfind("objective.", 0) == 0;
      EXPECT_TRUE(own || evaluation) << each.name << ": " << port.name;
      predictions += own ? 0 : 1;
    }
  }
  EXPECT_GT(predictions, 0u);
}

}  // namespace
}  // namespace gradrack
