// SPDX-License-Identifier: Apache-2.0
// Runs in 16 bits: fp16 and bf16_pure train, auto says what it chose and why.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

class PrecisionRun : public testing::TrainerFixture {
 protected:
  /// Losses of the first steps.
  std::vector<double> losses(const std::vector<std::string>& sets, int count) {
    const auto made = trainer(sets);
    std::vector<double> out;
    for (int k = 0; made != nullptr && k < count; ++k) {
      const auto report = made->step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      if (!report.ok()) break;
      if (report->updated) out.push_back(report->loss);
    }
    return out;
  }
};

TEST_F(PrecisionRun, Float16FollowsFloat32) {
  for (const char* backend : {"backend.plugin=reference", "backend.plugin=cpu"}) {
    const auto wide = losses({backend, "precision.plugin=fp32"}, 12);
    // Small enough that no step is skipped: both see the same batches.
    const auto half = losses({backend, "precision={plugin: fp16, init_scale: 1024}"}, 12);
    ASSERT_EQ(half.size(), wide.size()) << backend;
    for (size_t k = 0; k < wide.size(); ++k) EXPECT_NEAR(half[k], wide[k], 0.02) << backend << k;
    EXPECT_LT(half.back(), half.front());
    EXPECT_NE(half, wide);
  }
}

TEST_F(PrecisionRun, CpuSaysWhatItConverts) {
  const auto made = trainer({"backend.plugin=cpu", "precision.plugin=fp16"});
  ASSERT_NE(made, nullptr);
  const std::string text = plan_of(*made).summary.front().text();
  EXPECT_NE(text.find("float16 computed in float32"), std::string::npos) << text;
  EXPECT_NE(text.find(" 0 to the next"), std::string::npos) << text;
}

TEST_F(PrecisionRun, PureBfloat16LearnsByChance) {
  const std::vector<std::string> sets = {"precision.plugin=bf16_pure", "optimizer.lr=0.003"};
  for (const char* backend : {"backend.plugin=reference", "backend.plugin=cpu"}) {
    const auto made = trainer({sets[0], sets[1], backend});
    ASSERT_NE(made, nullptr);
    for (const StoredTensor& tensor : made->programs().store().tensors()) {
      if (tensor.source != Source::kParameter) continue;
      EXPECT_EQ(tensor.dtype, GR_BFLOAT16) << tensor.name;
    }
    double first = 0, last = 0;
    for (int k = 0; k < 60; ++k) {
      const auto report = made->step();
      ASSERT_TRUE(report.ok()) << report.status().message();
      (k == 0 ? first : last) = report->loss;
    }
    EXPECT_LT(last, 0.8 * first) << backend;
  }
}

TEST_F(PrecisionRun, StochasticRoundingDependsOnTheSeedAlone) {
  const auto bytes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"precision.plugin=bf16_pure", "backend.plugin=cpu"};
    sets.insert(sets.end(), more.begin(), more.end());
    const auto made = trainer(sets);
    if (made == nullptr) return std::vector<std::byte>();
    steps(*made, 6);
    return parameters(*made);
  };
  const auto once = bytes({});
  ASSERT_FALSE(once.empty());
  EXPECT_EQ(bytes({}), once);
  EXPECT_EQ(bytes({"backend={plugin: cpu, threads: 1}"}), once) << "nor on threads";
  EXPECT_NE(bytes({"run.seed=4"}), once);
}

TEST_F(PrecisionRun, AutoTakesWhatTheDeviceHasAndSaysWhy) {
  const auto plain = trainer({"backend.plugin=reference", "precision.plugin=auto"});
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->loss_scale(), nullptr);
  const std::string reason = plain->setup().precision_reason;
  EXPECT_EQ(reason,
            "not bf16: by conversion alone (bfloat16 computed in float64); not fp16: by conversion "
            "alone (float16 computed in float64); fp32");
  steps(*plain, 2);
  const auto wide = trainer({"backend.plugin=reference", "precision.plugin=fp32"});
  ASSERT_NE(wide, nullptr);
  steps(*wide, 2);
  EXPECT_EQ(parameters(*plain), parameters(*wide));
}

TEST_F(PrecisionRun, AutoOnCpuIsBfloat16WhereTheProcessorMultipliesIt) {
  const auto made = trainer({"backend.plugin=cpu", "precision.plugin=auto"});
  ASSERT_NE(made, nullptr);
  const std::string device = made->setup().machine->devices.front()->info().description;
  const bool native = device.find("bfloat16 products widened") == std::string::npos;
  const std::string& reason = made->setup().precision_reason;
  EXPECT_EQ(reason.starts_with("bf16: "), native) << device << "\n" << reason;
  EXPECT_EQ(reason.ends_with("; fp32"), !native) << device << "\n" << reason;
}

}  // namespace
}  // namespace gradrack
