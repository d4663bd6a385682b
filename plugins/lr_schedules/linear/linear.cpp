// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `linear`: a linear rise, then a linear fall to a floor.
//
// With t the update from 0, w warmup_steps, T max_updates and r min_ratio, the rate is lr times
//   (t + 1) / w                                     for t < w
//   1 - (1 - r) * min(1, (t - w) / (T - w))         otherwise.
// Invariant: computed from t, never accumulated, so a resumed run needs nothing restored.
#include <algorithm>

#include "gradrack/lr_schedule.hpp"

namespace {

constexpr gr_option_t kLinearOptions[] = {
    GR_OPT_INT("warmup_steps", "0", 0, INFINITY, "updates of linear rise from lr / warmup_steps"),
    GR_OPT_FLOAT("min_ratio", "0", 0, 1, "last rate divided by lr"),
};

class Linear {
 public:
  static constexpr const char* kName = "linear";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Linear warm-up, then a linear fall over the run's steps.";
  static constexpr auto& kOptions = kLinearOptions;

  explicit Linear(const gradrack::sdk::Options& options)
      : warmup_(options.get<int64_t>("warmup_steps")),
        min_ratio_(options.get<double>("min_ratio")) {}

  double value(const gr_lr_request_t& request) const {
    const int64_t t = request.update;
    if (t < warmup_) {
      return request.base_lr * static_cast<double>(t + 1) / static_cast<double>(warmup_);
    }
    const auto span = static_cast<double>(std::max<int64_t>(1, request.max_updates - warmup_));
    const double progress = std::min(1.0, static_cast<double>(t - warmup_) / span);
    return request.base_lr * (1 - (1 - min_ratio_) * progress);
  }

 private:
  int64_t warmup_;
  double min_ratio_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.linear", "1.0.0", gradrack::sdk::LrSchedule<Linear>)
