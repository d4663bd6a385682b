// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `warmup_cosine`: a linear rise, then half a cosine down to a floor.
//
// With t the update from 0, w warmup_steps, T max_updates and r min_ratio, the rate is lr times
//   (t + 1) / w                                              for t < w
//   r + (1 - r) / 2 * (1 + cos(pi * min(1, (t - w) / (T - w))))   otherwise.
// Invariant: computed from t, never accumulated, so a resumed run needs nothing restored.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "gradrack/lr_schedule.hpp"

namespace {

constexpr gr_option_t kWarmupCosineOptions[] = {
    GR_OPT_INT("warmup_steps", "0", 0, INFINITY, "updates of linear rise from lr / warmup_steps"),
    GR_OPT_FLOAT("min_ratio", "0.1", 0, 1, "last rate divided by lr"),
};

class WarmupCosine {
 public:
  static constexpr const char* kName = "warmup_cosine";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Linear warm-up, then a half cosine over the run's steps.";
  static constexpr auto& kOptions = kWarmupCosineOptions;

  explicit WarmupCosine(const gradrack::sdk::Options& options)
      : warmup_(options.get<int64_t>("warmup_steps")),
        min_ratio_(options.get<double>("min_ratio")) {}

  double value(const gr_lr_request_t& request) const {
    return request.base_lr * factor(request.update, request.max_updates);
  }

 private:
  double factor(int64_t t, int64_t horizon) const {
    if (t < warmup_) return static_cast<double>(t + 1) / static_cast<double>(warmup_);
    const auto span = static_cast<double>(std::max<int64_t>(1, horizon - warmup_));
    const double progress = std::min(1.0, static_cast<double>(t - warmup_) / span);
    return min_ratio_ + (1 - min_ratio_) / 2 * (1 + std::cos(std::numbers::pi * progress));
  }

  int64_t warmup_;
  double min_ratio_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.warmup_cosine", "1.0.0", gradrack::sdk::LrSchedule<WarmupCosine>)
