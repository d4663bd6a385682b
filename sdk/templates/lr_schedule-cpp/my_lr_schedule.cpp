// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedule `my_lr_schedule`: a straight line from lr down to end_ratio * lr.
//
//   rate(t) = lr * (1 + (end_ratio - 1) * min(1, t / (T - 1))),   t from 0, T the run's max_steps
//
// Invariant: computed from t, never accumulated, so a resumed run needs nothing restored. The host
// asks for each parameter group, and the rate has to be finite and not negative.
// Change first: the options and the formula in `value`.
#include <algorithm>

#include "gradrack/lr_schedule.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_FLOAT("end_ratio", "0", 0, 1, "last rate divided by lr"),
};

class MyLrSchedule {
 public:
  static constexpr const char* kName = "my_lr_schedule";  // `plugin: my_lr_schedule`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Linear decay over the run's steps.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyLrSchedule(const gr::Options& options)
      : end_ratio_(options.get<double>("end_ratio")) {}

  double value(const gr_lr_request_t& request) const {
    const auto last = static_cast<double>(std::max<int64_t>(1, request.max_updates - 1));
    const double progress = std::min(1.0, static_cast<double>(request.update) / last);
    return request.base_lr * (1 + (end_ratio_ - 1) * progress);
  }

 private:
  double end_ratio_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_lr_schedule", "1.0.0", gr::LrSchedule<MyLrSchedule>)
