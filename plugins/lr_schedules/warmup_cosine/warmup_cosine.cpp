// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `warmup_cosine`: a linear rise, then half a cosine down to a floor.
//
// With t the update from 0, w warmup_steps, T max_updates and r min_ratio, the rate is lr times
//   (t + 1) / w                                              for t < w
//   r + (1 - r) / 2 * (1 + cos(pi * min(1, (t - w) / (T - w))))   otherwise.
// Invariant: computed from t, never accumulated, so a resumed run needs nothing restored.
#include <cmath>
#include <numbers>

#include "gradrack/lr_schedule.hpp"

namespace {

constexpr gr_option_t kWarmupCosineOptions[] = {
    gradrack::sdk::kWarmupOption,
    GR_OPT_FLOAT("min_ratio", "0.1", 0, 1, "last rate divided by lr"),
};

class WarmupCosine {
 public:
  static constexpr const char* kName = "warmup_cosine";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Linear warm-up, then a half cosine over the run's steps.";
  static constexpr auto& kOptions = kWarmupCosineOptions;

  explicit WarmupCosine(const gradrack::sdk::Options& options)
      : warmup_(options), min_ratio_(options.get<double>("min_ratio")) {}

  double value(const gr_lr_request_t& request) const { return request.base_lr * factor(request); }

 private:
  double factor(const gr_lr_request_t& request) const {
    if (warmup_.covers(request.update)) return warmup_.factor(request.update);
    return min_ratio_ +
           (1 - min_ratio_) / 2 * (1 + std::cos(std::numbers::pi * warmup_.progress(request)));
  }

  gradrack::sdk::Warmup warmup_;
  double min_ratio_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.warmup_cosine", "1.0.0", gradrack::sdk::LrSchedule<WarmupCosine>)
