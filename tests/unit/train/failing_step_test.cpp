// SPDX-License-Identifier: Apache-2.0
// A step in which a kernel fails changes nothing that lasts, and can be tried again: parameters,
// running statistics, optimizer state and the loss become what they would have become.
#include <gtest/gtest.h>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

class FailingStep : public testing::TrainerFixture {
 protected:
  /// Three steps; one in which something failed is tried again, once.
  void train(bool cnn, const std::vector<std::string>& sets) {
    failures_ = 0;
    const auto made = cnn ? cnn_trainer(sets) : trainer(sets);
    ASSERT_NE(made, nullptr);
    for (int step = 0; step < 3; ++step) {
      const std::vector<std::byte> before = parameters(*made);
      const auto report = made->step();
      if (report.ok()) continue;
      ++failures_;
      EXPECT_EQ(report.status().code(), GR_OUT_OF_RANGE) << report.status().message();
      EXPECT_EQ(parameters(*made), before) << report.status().message();
      const auto again = made->step();
      ASSERT_TRUE(again.ok()) << again.status().message();
    }
    after_ = parameters(*made);
  }

  void expect_steps_to_be_undone(bool cnn, const std::string& microbatches) {
    const std::vector<std::string> common = {
        microbatches,
        "scheduler={plugin: shuffled, streams: 4, seed: 5, auto_off: false, profile: false}",
        "run.max_grad_norm=1.0"};
    std::vector<std::string> sets = common;
    sets.push_back(testing::emulated("memory: host"));
    train(cnn, sets);
    const std::vector<std::byte> expected = after_;
    ASSERT_EQ(failures_, 0);
    int failures = 0;
    for (int k = 0; k < 24; ++k) {
      const int at = 1 + 17 * k;
      sets = common;
      sets.push_back(testing::emulated((k % 2 == 0 ? "memory: host" : "memory: device") +
                                       std::string(", threaded: true, fail_at: ") +
                                       std::to_string(at)));
      train(cnn, sets);
      EXPECT_EQ(after_, expected) << "kernel run " << at;
      failures += failures_;
    }
    EXPECT_GT(failures, 12);
  }

  int failures_ = 0;
  std::vector<std::byte> after_;
};

TEST_F(FailingStep, OfOnePlanIsUndone) {
  expect_steps_to_be_undone(false, "run.accumulate_steps=1");
}

TEST_F(FailingStep, OfSeveralMicrobatchesWithRunningStatisticsIsUndone) {
  expect_steps_to_be_undone(true, "run.accumulate_steps=3");
}

}  // namespace
}  // namespace gradrack
