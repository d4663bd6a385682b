// SPDX-License-Identifier: Apache-2.0
// Clipping by group, and runs as long as a number of tokens.
#include <gtest/gtest.h>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

class Clipping : public testing::TrainerFixture {
 protected:
  std::vector<std::byte> trained(const std::string& clip, const std::string& groups) {
    const auto made = trainer(
        {"run.max_grad_norm=" + clip, "optimizer={plugin: sgd, lr: 0.1, groups: " + groups + "}"});
    if (made == nullptr) return {};
    steps(*made, 4);
    return parameters(*made);
  }
};

TEST_F(Clipping, AGroupOfAllIsClippedAsTheRunIs) {
  const auto by_run = trained("0.05", "[{match: ['*']}]");
  ASSERT_FALSE(by_run.empty());
  EXPECT_EQ(trained(".inf", "[{match: ['*'], max_grad_norm: 0.05}]"), by_run);
  EXPECT_NE(trained(".inf", "[{match: ['*']}]"), by_run) << "a norm that does clip";
}

TEST_F(Clipping, AGroupWithItsOwnNormHasNoPartInTheOthers) {
  // All but the norms are clipped alone, so the rest sees no norm but its own, which is small.
  const auto own = trained("1000", "[{rank: 2, max_grad_norm: 0.05}]");
  const auto none = trained(".inf", "[{rank: 2, max_grad_norm: 0.05}]");
  ASSERT_FALSE(own.empty());
  EXPECT_EQ(own, none) << "1000 clips nothing";
  EXPECT_NE(trained("0.0001", "[{rank: 2, max_grad_norm: 0.05}]"), none) << "the rest is clipped";
  EXPECT_EQ(trained("0.05", "[{match: ['*'], max_grad_norm: .inf}]"),
            trained(".inf", "[{match: ['*']}]"))
      << "infinity: not at all, whatever the run says";
}

// Where no group clips the updates do not wait for the norm, whatever the run's own is.
TEST_F(Clipping, GroupsThatDoNotClipAreTakenBackToo) {
  const auto made = trainer({"run.max_grad_norm=0.05", "model.tied=false",
                             "optimizer.groups=[{match: ['*'], max_grad_norm: .inf}]"});
  ASSERT_NE(made, nullptr);
  expect_non_finite_norm_is_taken_back(*made);
}

// Where one clips they do, and there is nothing to take back.
TEST_F(Clipping, AGroupThatClipsNeedsNoCopiesToTakeBack) {
  const auto copies = [&](const char* clip, const char* groups) {
    const auto made = trainer(
        {std::string("run.max_grad_norm=") + clip, std::string("optimizer.groups=") + groups});
    return made == nullptr ? size_t{0} : plan_of(*made).undo.copies.size();
  };
  EXPECT_GT(copies(".inf", "[]"), 0u);
  EXPECT_EQ(copies("1", "[]"), 0u);
  EXPECT_EQ(copies(".inf", "[{rank: 2, max_grad_norm: 0.05}]"), 0u);
}

TEST_F(Clipping, MaxTokensSaysHowManySteps) {
  const std::string output = ::testing::TempDir() + "max_tokens_run";
  const auto made = trainer(
      {"run={seed: 3, max_tokens: 100, batch_size: 2, accumulate_steps: 2, output: " + output +
       "}"});
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->programs().run().max_steps, 4) << "32 tokens a step: 100 take four";
  std::filesystem::remove_all(output);
}

}  // namespace
}  // namespace gradrack
