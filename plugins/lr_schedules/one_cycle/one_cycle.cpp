// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `one_cycle`: up to lr and down again over the run, by half cosines.
//
// With t the update from 0, T max_updates and p = pct_start * T - 1, the rate goes from lr /
// div_factor at t = 0 to lr at t = p, and from there to lr / (div_factor final_div_factor) at
// t = T - 1, as torch.optim.lr_scheduler.OneCycleLR with two phases. Invariant: computed from t,
// never accumulated. Source: Smith and Topin, "Super-Convergence" (arXiv 1708.07120).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "gradrack/lr_schedule.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOneCycleOptions[] = {
    GR_OPT_FLOAT("pct_start", "0.3", 0, 1, "share of the run's steps that rises"),
    GR_OPT_FLOAT("div_factor", "25", 1, INFINITY, "lr divided by the first rate"),
    GR_OPT_FLOAT("final_div_factor", "1e4", 1, INFINITY, "the first rate divided by the last"),
};

class OneCycle {
 public:
  static constexpr const char* kName = "one_cycle";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "One rise to lr and one fall, over the run's steps.";
  static constexpr auto& kOptions = kOneCycleOptions;

  explicit OneCycle(const gr::Options& options)
      : rise_(options.get<double>("pct_start")),
        div_(options.get<double>("div_factor")),
        final_div_(options.get<double>("final_div_factor")) {}

  double value(const gr_lr_request_t& request) const {
    const double first = request.base_lr / div_, last = first / final_div_;
    const auto horizon = static_cast<double>(request.max_updates);
    const auto t = std::min(static_cast<double>(request.update), horizon - 1);
    const double peak = rise_ * horizon - 1;
    if (t <= peak) return blend(first, request.base_lr, peak > 0 ? t / peak : 1);
    const double fall = std::max(1.0, horizon - 1 - peak);
    return blend(request.base_lr, last, (t - peak) / fall);
  }

 private:
  static double blend(double from, double to, double share) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * std::clamp(share, 0.0, 1.0)));
  }

  double rise_, div_, final_div_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.one_cycle", "1.0.0", gr::LrSchedule<OneCycle>)
