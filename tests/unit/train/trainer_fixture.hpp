// SPDX-License-Identifier: Apache-2.0
// Trainers of tiny models in process, for the tests of this folder.
//
// Each test has a folder of its own with a text and a set of images, removed at the end; sessions
// live as long as the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/train/trainer.hpp"

namespace gradrack::testing {

/// The setting for a chain of the emulated device (tests/support/emulated_plugin.cpp) with those
/// options, and reference.
inline std::string emulated(const std::string& options) {
  return "backend=[{plugin: emulated, " + options + "}, {plugin: reference}]";
}

class TrainerFixture : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A trainer of a tiny GPT with `sets` over the run file; null, and the test failed, when it
  /// cannot be made.
  std::unique_ptr<Trainer> trainer(const std::vector<std::string>& sets);
  /// The same of a tiny convolutional network.
  std::unique_ptr<Trainer> cnn_trainer(const std::vector<std::string>& sets);
  /// The same of the trunk with three stems (tests/support/stems_plugin.cpp): objectives box, kind
  /// and point. Sessions and trainers that are made with a `machine` share it.
  std::unique_ptr<Trainer> stems_trainer(const std::vector<std::string>& sets,
                                         std::shared_ptr<Machine> machine = nullptr);
  std::unique_ptr<Session> stems_session(const std::vector<std::string>& sets);
  /// The session that trainer() would open: for trainers that are refused.
  std::unique_ptr<Session> open_for(const std::vector<std::string>& sets);

  /// Bytes of everything that persists between steps.
  static std::vector<std::byte> parameters(Trainer& trainer);
  static void steps(Trainer& trainer, int count);
  /// Of the trainer that was made last.
  Session& last_session() { return *sessions_.back(); }
  /// Where the trainer writes.
  static std::filesystem::path folder_of(Trainer& trainer);
  /// The plan of a step of one microbatch with all objectives.
  static const Plan& plan_of(Trainer& trainer);
  /// Gives a float32 parameter two numbers in turn.
  static void fill(Trainer& trainer, const char* name, float even, float odd);
  /// A weight that is NaN.
  static void poison(Trainer& trainer);
  /// The same with gradients whose norm overflows under a finite loss, with model.tied=false.
  void expect_non_finite_norm_is_taken_back(Trainer& trainer);
  /// One good step, a poisoned weight, one more: it must not update, nor change a byte.
  static void expect_non_finite_step_changes_nothing(Trainer& trainer);

 private:
  std::string gpt_text() const;
  std::unique_ptr<Session> open(const std::string& model_and_data,
                                const std::vector<std::string>& sets);
  std::unique_ptr<Trainer> make(const std::string& model_and_data,
                                const std::vector<std::string>& sets,
                                std::shared_ptr<Machine> machine = nullptr);

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace gradrack::testing
