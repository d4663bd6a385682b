// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `linear`: a linear rise, then a linear fall to a floor.
//
// With t the update from 0, w warmup_steps, T max_updates and r min_ratio, the rate is lr times
//   (t + 1) / w                                     for t < w
//   1 - (1 - r) * min(1, (t - w) / (T - w))         otherwise.
// Invariant: computed from t, never accumulated, so a resumed run needs nothing restored.
#include "gradrack/lr_schedule.hpp"

namespace {

constexpr gr_option_t kLinearOptions[] = {
    gradrack::sdk::kWarmupOption,
    GR_OPT_FLOAT("min_ratio", "0", 0, 1, "last rate divided by lr"),
};

class Linear {
 public:
  static constexpr const char* kName = "linear";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Linear warm-up, then a linear fall over the run's steps.";
  static constexpr auto& kOptions = kLinearOptions;

  explicit Linear(const gradrack::sdk::Options& options)
      : warmup_(options), min_ratio_(options.get<double>("min_ratio")) {}

  double value(const gr_lr_request_t& request) const {
    if (warmup_.covers(request.update)) {
      return request.base_lr * warmup_.factor(request.update);
    }
    return request.base_lr * (1 - (1 - min_ratio_) * warmup_.progress(request));
  }

 private:
  gradrack::sdk::Warmup warmup_;
  double min_ratio_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.linear", "1.0.0", gradrack::sdk::LrSchedule<Linear>)
