// SPDX-License-Identifier: Apache-2.0
// A loss scale in a run: it changes no bit where numbers are wide, what it skips is left as it was,
// and nothing that counts updates goes on.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

class LossScaleRun : public testing::TrainerFixture {
 protected:
  std::vector<std::byte> trained(std::vector<std::string> sets, const std::string& precision) {
    sets.push_back("precision=" + precision);
    const auto made = trainer(sets);
    if (made == nullptr) return {};
    steps(*made, 5);
    return parameters(*made);
  }
  /// The metric records of a run, one a step.
  static std::vector<nlohmann::json> records(Trainer& trainer) {
    std::vector<nlohmann::json> out;
    std::ifstream file(folder_of(trainer) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.contains("train/loss")) out.push_back(record);
    }
    return out;
  }
};

// CLP-02 and engine.md: unscaled before clipping, exactly.
TEST_F(LossScaleRun, APowerOfTwoChangesNoBit) {
  for (const char* backend : {"backend.plugin=reference", "backend.plugin=cpu"}) {
    for (const char* accumulate : {"run.accumulate_steps=1", "run.accumulate_steps=3"}) {
      for (const char* clip : {"run.max_grad_norm=.inf", "run.max_grad_norm=0.1"}) {
        const std::vector<std::string> sets = {backend, accumulate, clip};
        const auto plain = trained(sets, "{plugin: fp32}");
        ASSERT_FALSE(plain.empty());
        EXPECT_EQ(trained(sets, "{plugin: scaled, init_scale: 1}"), plain) << backend << accumulate;
        EXPECT_EQ(trained(sets, "{plugin: scaled, init_scale: 65536}"), plain)
            << backend << " " << accumulate << " " << clip;
      }
    }
  }
}

TEST_F(LossScaleRun, SeveralObjectivesAreUnscaledToo) {
  std::vector<std::byte> first;
  for (const char* accumulate : {"run.accumulate_steps=1", "run.accumulate_steps=2"}) {
    first.clear();
    for (const char* scale : {"1", "4096"}) {
      const auto made = stems_trainer(
          {accumulate, std::string("precision={plugin: scaled, init_scale: ") + scale + "}"});
      ASSERT_NE(made, nullptr);
      steps(*made, 3);
      const auto now = parameters(*made);
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << accumulate;
    }
  }
}

TEST_F(LossScaleRun, ASkippedStepLeavesEverythingAndHalvesTheScale) {
  for (const char* undo : {"run.undo=true", "run.undo=false"}) {
    const auto made = trainer({undo, "precision={plugin: fp16, init_scale: 1073741824}"});
    ASSERT_NE(made, nullptr);
    int skipped = 0;
    for (bool updated = false; !updated && skipped < 30; skipped += updated ? 0 : 1) {
      const std::vector<std::byte> before = parameters(*made);
      const double scale = made->loss_scale()->value();
      const auto report = made->step();
      ASSERT_TRUE(report.ok()) << report.status().message();
      updated = report->updated;
      EXPECT_EQ(report->loss_scale, scale);
      if (updated) continue;
      EXPECT_EQ(parameters(*made), before);
      EXPECT_EQ(made->loss_scale()->value(), scale / 2);
      EXPECT_TRUE(std::isfinite(report->loss));
    }
    EXPECT_GT(skipped, 0) << "a scale of 2^30 overflows float16";
    EXPECT_LT(skipped, 25);
    EXPECT_EQ(made->nonfinite_steps(), skipped);
  }
}

// SCH-04: neither the schedule nor the counts go on with a skipped step.
TEST_F(LossScaleRun, TheScheduleWaitsForTheFirstUpdate) {
  const auto made = trainer({"run.max_steps=24", "run.log_interval=1",
                             "lr_schedule={plugin: warmup_cosine, warmup_steps: 10}",
                             "precision={plugin: fp16, init_scale: 1073741824}"});
  ASSERT_NE(made, nullptr);
  ASSERT_TRUE(made->run().ok());
  const auto all = records(*made);
  ASSERT_EQ(all.size(), 24u);
  int64_t updates = 0;
  double first_rate = 0;
  for (const auto& record : all) {
    const bool updated = record["updates"].get<int64_t>() > updates;
    updates = record["updates"].get<int64_t>();
    if (updates == 0) first_rate = record["lr"];
    if (updates == 1 && updated) {
      EXPECT_EQ(record["lr"].get<double>(), first_rate) << "the first value of the warm-up";
      EXPECT_NEAR(first_rate, 0.001, 1e-12);
    }
    EXPECT_EQ(record["skipped_steps"].get<int64_t>() + updates, record["step"].get<int64_t>());
  }
  EXPECT_GT(updates, 0);
  EXPECT_LT(updates, 24);
}

// CLP-03: a run that cannot be saved ends, with a message.
TEST_F(LossScaleRun, NaNOnEveryBatchEndsTheRunAfterTwentySkips) {
  const auto made = trainer({"run.log_interval=1", "precision.plugin=fp16"});
  ASSERT_NE(made, nullptr);
  poison(*made);
  const Status status = made->run();
  EXPECT_EQ(status.code(), GR_NONFINITE);
  EXPECT_EQ(made->steps(), 20);
  EXPECT_EQ(made->loss_scale()->value(), 1.0);
  EXPECT_NE(status.message().find("20 steps in a row"), std::string::npos) << status.message();
}

TEST_F(LossScaleRun, RestoresItsState) {
  const auto made = trainer({"precision.plugin=fp16"});
  ASSERT_NE(made, nullptr);
  ASSERT_TRUE(made->loss_scale()->restore({128, 7, 2}).ok());
  const auto report = made->step();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->loss_scale, 128);
  EXPECT_EQ(made->loss_scale()->state().clean_steps, 8);
  EXPECT_EQ(made->loss_scale()->state().skipped_steps, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(made->loss_scale()->restore({nan, 0, 0}).code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(made->loss_scale()->value(), 128) << "a state that is none changes nothing";
}

TEST_F(LossScaleRun, WithoutOneNonFiniteStepsEndTheRunUnlessTheFileSaysSkip) {
  const auto strict = trainer({"run.max_steps=3"});
  ASSERT_NE(strict, nullptr);
  poison(*strict);
  EXPECT_EQ(strict->run().code(), GR_NONFINITE);
  EXPECT_EQ(strict->steps(), 1);
  const auto skips = trainer({"run.max_steps=3", "run.error_if_nonfinite=false"});
  ASSERT_NE(skips, nullptr);
  poison(*skips);
  EXPECT_TRUE(skips->run().ok());
  EXPECT_EQ(skips->nonfinite_steps(), 3);
}

}  // namespace
}  // namespace gradrack
