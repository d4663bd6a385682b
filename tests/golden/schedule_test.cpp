// SPDX-License-Identifier: Apache-2.0
// A real model's loss, logits and gradients have the same bits whatever the schedule.
//
// Random legal orders on 1 to 4 streams against program order, on both backends; each plan is also
// proven free of races on shared bytes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/golden/model_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

void expect_same_bits(const std::string& backend, uint32_t schedules) {
  auto golden = SafetensorsFile::open(GRADRACK_SOURCE_DIR
                                      "/tests/golden/gpt_rms_rope_swiglu_gqa_tied.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  const auto config = nlohmann::json::parse(golden->metadata().find("config")->second);
  gr_data_info_t data = {};
  data.struct_size = sizeof data;
  data.vocab = config["vocab"];
  data.block = config["block"];
  testing::ModelCase c = {"gpt", {}, data, "fp32", backend};
  for (const auto& [key, value] : config.items()) {
    if (key == "batch") continue;
    c.options[key == "ffn_hidden" ? "ffn_dim" : key] =
        value.is_string() ? value.get<std::string>() : value.dump();
  }
  const testing::Tensors expected = testing::run_model(c, *golden);
  EXPECT_GE(expected.size(), 10u);
  for (uint32_t seed = 0; seed < schedules; ++seed) {
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    c.scheduler = scheduler.table();
    EXPECT_EQ(testing::run_model(c, *golden), expected) << "seed " << seed;
  }
}

TEST(ModelSchedules, GiveTheSameBitsOnTheCpu) { expect_same_bits("cpu", 24); }

TEST(ModelSchedules, GiveTheSameBitsOnTheReference) { expect_same_bits("reference", 8); }

}  // namespace
}  // namespace gradrack
