// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `step`: multiplied by gamma every step_size updates, after a warm-up.
//
// With t the update from 0 and w warmup_steps, the rate is lr times (t + 1) / w for t < w, else
// gamma^floor((t - w) / step_size). Without warm-up this is torch.optim.lr_scheduler.StepLR.
// Invariant: computed from t, never accumulated.
#include <cmath>

#include "gradrack/lr_schedule.hpp"

namespace {

constexpr gr_option_t kStepOptions[] = {
    gradrack::sdk::kWarmupOption,
    GR_OPT_INT("step_size", "1000", 1, INFINITY, "updates between two falls"),
    GR_OPT_FLOAT("gamma", "0.1", 0, 1, "factor of each fall"),
};

class Step {
 public:
  static constexpr const char* kName = "step";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "A fall by gamma every step_size updates.";
  static constexpr auto& kOptions = kStepOptions;

  explicit Step(const gradrack::sdk::Options& options)
      : warmup_(options),
        size_(options.get<int64_t>("step_size")),
        gamma_(options.get<double>("gamma")) {}

  double value(const gr_lr_request_t& request) const {
    const int64_t t = request.update;
    if (warmup_.covers(t)) return request.base_lr * warmup_.factor(t);
    return request.base_lr * std::pow(gamma_, static_cast<double>((t - warmup_.steps()) / size_));
  }

 private:
  gradrack::sdk::Warmup warmup_;
  int64_t size_;
  double gamma_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.step", "1.0.0", gradrack::sdk::LrSchedule<Step>)
