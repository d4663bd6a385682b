// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `wsd`: warm-up, a long stable part, a short decay at the end.
//
// With t the update from 0, w warmup_steps, T max_updates, d decay_steps (or decay_share of T) and
// r min_ratio, the rate is lr times
//   (t + 1) / w                              for t < w
//   1                                        for t < T - d
//   1 - (1 - r) f((t - (T - d)) / d)         otherwise, f(p) = p (linear) or sqrt(p).
// A longer run only moves the decay, so one may go on from any point of the stable part.
// Invariant: computed from t, never accumulated. Source: Hu et al., "MiniCPM" (arXiv 2404.06395),
// section 4; the sqrt form is that of Hägele et al. (arXiv 2405.18392).
#include <algorithm>
#include <cmath>
#include <string>

#include "gradrack/lr_schedule.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kWsdOptions[] = {
    gr::kWarmupOption,
    GR_OPT_INT("decay_steps", "0", 0, INFINITY, "updates of decay at the end; 0: decay_share"),
    GR_OPT_FLOAT("decay_share", "0.2", 0, 1, "share of the run's steps that decays"),
    GR_OPT_CHOICE("shape", "linear", "linear|sqrt", "form of the decay"),
    GR_OPT_FLOAT("min_ratio", "0", 0, 1, "last rate divided by lr"),
};

class Wsd {
 public:
  static constexpr const char* kName = "wsd";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Warm-up, stable, decay.";
  static constexpr auto& kOptions = kWsdOptions;

  explicit Wsd(const gr::Options& options)
      : warmup_(options),
        decay_(options.get<int64_t>("decay_steps")),
        share_(options.get<double>("decay_share")),
        root_(options.get<std::string>("shape") == "sqrt"),
        min_ratio_(options.get<double>("min_ratio")) {}

  double value(const gr_lr_request_t& request) const {
    const int64_t t = request.update, horizon = request.max_updates;
    if (warmup_.covers(t)) return request.base_lr * warmup_.factor(t);
    const int64_t asked = decay_ > 0 ? decay_ : std::llround(share_ * static_cast<double>(horizon));
    const int64_t decay =
        std::clamp<int64_t>(asked, 0, std::max<int64_t>(0, horizon - warmup_.steps()));
    const int64_t into = t - (horizon - decay);
    if (into < 0 || decay == 0) return request.base_lr;
    const double progress = std::min(1.0, static_cast<double>(into) / static_cast<double>(decay));
    return request.base_lr * (1 - (1 - min_ratio_) * (root_ ? std::sqrt(progress) : progress));
  }

 private:
  gr::Warmup warmup_;
  int64_t decay_;
  double share_;
  bool root_;
  double min_ratio_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.wsd", "1.0.0", gr::LrSchedule<Wsd>)
