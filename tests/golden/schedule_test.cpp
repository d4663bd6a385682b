// SPDX-License-Identifier: Apache-2.0
// A real model's loss, logits and gradients have the same bits whatever the schedule.
//
// Random legal orders on 1 to 4 streams against program order, on both backends; each plan is also
// proven free of races on shared bytes.
#include <gtest/gtest.h>

#include "tests/golden/model_cases.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

/// `one` and `several`: options of the backend for program order and for the other schedules.
void expect_same_bits(const std::string& backend, uint32_t schedules,
                      const testing::OptionTexts& one = {},
                      const testing::OptionTexts& several = {}) {
  const SafetensorsFile golden = testing::open_golden("gpt_rms_rope_swiglu_gqa_tied");
  testing::ModelCase c = testing::gpt_case(golden, backend);
  c.backend_options = one;
  const testing::Tensors expected = testing::run_model(c, golden);
  EXPECT_GE(expected.size(), 10u);
  c.backend_options = several;
  for (uint32_t seed = 0; seed < schedules; ++seed) {
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    c.scheduler = scheduler.table();
    EXPECT_EQ(testing::run_model(c, golden), expected) << "seed " << seed;
  }
}

TEST(ModelSchedules, GiveTheSameBitsOnTheCpu) {
  expect_same_bits("cpu", 16, {{"threads", "1"}}, {{"threads", "4"}, {"threads_per_stream", "1"}});
}

TEST(ModelSchedules, GiveTheSameBitsOnStreamsOfSeveralThreads) {
  expect_same_bits("cpu", 8, {{"threads", "2"}}, {{"threads", "8"}, {"threads_per_stream", "2"}});
}

TEST(ModelSchedules, GiveTheSameBitsOnTheReference) { expect_same_bits("reference", 8); }

}  // namespace
}  // namespace gradrack
