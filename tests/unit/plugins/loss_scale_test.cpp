// SPDX-License-Identifier: Apache-2.0
// The loss scale of fp16 as a state machine, through the C ABI.
#include "gradrack/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {
namespace {

class LossScaleOf {
 public:
  explicit LossScaleOf(const OptionTexts& options = {})
      : plugin_(load_factory("gradrack_precision_mixed", "precision", "fp16"), options),
        table_(static_cast<const gr_loss_scale_t*>(
            plugin_->get_extension(plugin_.self(), GR_EXT_LOSS_SCALE))) {
    gr_error_t err = {};
    EXPECT_EQ(table_->begin(table_->self, &state, &err), GR_OK);
  }

  int32_t step(bool finite) {
    gr_error_t err = {};
    const gr_loss_scale_state_t before = state;
    const int32_t code = table_->next(table_->self, &before, finite ? 1 : 0, &state, &err);
    message = err.message;
    return code;
  }

  gr_loss_scale_state_t state = {};
  std::string message;

 private:
  Instance<gr_precision_t> plugin_;
  const gr_loss_scale_t* table_;
};

TEST(LossScale, GrowsAfterTwoThousandFiniteStepsInARow) {
  LossScaleOf scale;
  EXPECT_EQ(scale.state.scale, 65536);
  for (int k = 0; k < 1999; ++k) ASSERT_EQ(scale.step(true), GR_OK);
  EXPECT_EQ(scale.state.scale, 65536);
  ASSERT_EQ(scale.step(true), GR_OK);
  EXPECT_EQ(scale.state.scale, 131072);
  EXPECT_EQ(scale.state.clean_steps, 0);
}

TEST(LossScale, OneNonFiniteStepHalvesItAndBeginsTheCountAnew) {
  LossScaleOf scale;
  for (int k = 0; k < 1999; ++k) ASSERT_EQ(scale.step(true), GR_OK);
  ASSERT_EQ(scale.step(false), GR_OK);
  EXPECT_EQ(scale.state.scale, 32768);
  EXPECT_EQ(scale.state.clean_steps, 0);
  EXPECT_EQ(scale.state.skipped_steps, 1);
  for (int k = 0; k < 1999; ++k) ASSERT_EQ(scale.step(true), GR_OK);
  EXPECT_EQ(scale.state.scale, 32768) << "the steps before the skip do not count";
  EXPECT_EQ(scale.state.skipped_steps, 0);
}

// CLP-03.
TEST(LossScale, NeverFallsBelowOneAndGivesUpAfterTwentySkipsInARow) {
  LossScaleOf scale;
  for (int k = 0; k < 19; ++k) ASSERT_EQ(scale.step(false), GR_OK) << k;
  EXPECT_EQ(scale.state.scale, 1);
  EXPECT_EQ(scale.step(false), GR_NONFINITE);
  EXPECT_EQ(scale.state.scale, 1);
  EXPECT_EQ(scale.state.skipped_steps, 20) << "the state is told with the error";
  EXPECT_NE(scale.message.find("20 steps in a row"), std::string::npos) << scale.message;
}

TEST(LossScale, NeverGrowsPastFloat32) {
  LossScaleOf scale(
      OptionTexts{{"init_scale", "1.7014118346046923e38"}, {"growth_interval", "1"}});  // 2^127
  ASSERT_EQ(scale.step(true), GR_OK);
  EXPECT_EQ(scale.state.scale, 0x1p127);
  EXPECT_TRUE(std::isfinite(static_cast<float>(scale.state.scale)));
}

TEST(LossScale, GoesOnFromAStateExactly) {
  const OptionTexts texts = {{"growth_interval", "7"}};
  LossScaleOf one(texts), other(texts);
  for (int k = 0; k < 50; ++k) {
    const bool finite = k % 11 != 3;
    ASSERT_EQ(one.step(finite), GR_OK);
    if (k < 20) continue;
    if (k == 20) {
      other.state = one.state;
      continue;
    }
    ASSERT_EQ(other.step(finite), GR_OK);
    EXPECT_EQ(other.state.scale, one.state.scale) << k;
    EXPECT_EQ(other.state.clean_steps, one.state.clean_steps) << k;
  }
}

}  // namespace
}  // namespace gradrack::testing
