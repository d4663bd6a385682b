// SPDX-License-Identifier: Apache-2.0
// DynamicScale: the loss scale of fp16, as a pure function from state to state.
//
// Grows by growth_factor after growth_interval finite steps in a row, and shrinks by backoff_factor
// at once after one that was not; both begin the count anew. Invariants: a scale is never below 1,
// and one that growing would take past float32 stays. With the default factors it stays a power of
// two, so that putting it in and taking it out changes no bit in the normal range.
// Source: torch.amp.GradScaler, but for the floor and the limit on skipped steps.
#pragma once

#include <algorithm>
#include <limits>

#include "gradrack/precision.hpp"

namespace gradrack::mixed {

inline constexpr gr_option_t kScaleOptions[] = {
    GR_OPT_FLOAT("init_scale", "65536", 1, 3.4028234663852886e38, "the loss scale to begin with"),
    GR_OPT_FLOAT("growth_factor", "2", 1, 65536,
                 "what it grows by; a power of two keeps gradients exact"),
    GR_OPT_FLOAT("backoff_factor", "0.5", 0, 1,
                 "what it shrinks by after a step without finite gradients; below 1"),
    GR_OPT_INT("growth_interval", "2000", 1, 1000000000, "finite steps in a row before it grows"),
    GR_OPT_INT("max_skipped_steps", "20", 1, 1000000000,
               "the run ends when so many steps in a row had no finite gradients"),
};

class DynamicScale {
 public:
  explicit DynamicScale(const sdk::Options& options)
      : init_(options.get<double>("init_scale")),
        growth_(options.get<double>("growth_factor")),
        backoff_(options.get<double>("backoff_factor")),
        interval_(options.get<int64_t>("growth_interval")),
        most_skipped_(options.get<int64_t>("max_skipped_steps")) {
    sdk::require(backoff_ > 0 && backoff_ < 1, GR_INVALID_ARGUMENT, "backoff_factor", "got ",
                 backoff_, ", wanted a number above 0 and below 1: the scale must shrink");
  }

  gr_loss_scale_state_t first() const { return {init_, 0, 0}; }
  int64_t most_skipped() const { return most_skipped_; }

  gr_loss_scale_state_t next(const gr_loss_scale_state_t& state, bool finite) const {
    if (!finite) return {std::max(1.0, state.scale * backoff_), 0, state.skipped_steps + 1};
    if (state.clean_steps + 1 < interval_) return {state.scale, state.clean_steps + 1, 0};
    constexpr double kMost = std::numeric_limits<float>::max();
    const double grown = state.scale * growth_;
    return {grown <= kMost ? grown : state.scale, 0, 0};
  }

 private:
  double init_, growth_, backoff_;
  int64_t interval_, most_skipped_;
};

}  // namespace gradrack::mixed
