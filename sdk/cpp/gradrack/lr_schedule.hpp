// SPDX-License-Identifier: Apache-2.0
// LrSchedule<T>: the factory of a learning-rate schedule class. See plugin.hpp for the constants.
//
// T needs:  double value(const gr_lr_request_t& request) const;   // [any]
// Invariant: a pure function of the request and the options.
#pragma once

#include <algorithm>
#include <cmath>

#include "gradrack/lr_schedule.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// Row of an options table for schedules that begin with a Warmup.
inline constexpr gr_option_t kWarmupOption =
    GR_OPT_INT("warmup_steps", "0", 0, INFINITY, "updates of linear rise from lr / warmup_steps");

/// A linear rise over the first `warmup_steps` updates, counted from 0.
class Warmup {
 public:
  explicit Warmup(const Options& options) : steps_(options.get<int64_t>("warmup_steps")) {}

  int64_t steps() const { return steps_; }
  bool covers(int64_t update) const { return update < steps_; }
  /// (update + 1) / steps, of an update that it covers.
  double factor(int64_t update) const {
    return static_cast<double>(update + 1) / static_cast<double>(steps_);
  }
  /// Of an update behind it: the share of the way from its end to the horizon, at most 1.
  double progress(const gr_lr_request_t& request) const {
    const auto span = static_cast<double>(std::max<int64_t>(1, request.max_updates - steps_));
    return std::min(1.0, static_cast<double>(request.update - steps_) / span);
  }

 private:
  int64_t steps_;
};

template <typename T>
class LrSchedule : public Factory<LrSchedule<T>, T, gr_lr_schedule_t> {
  using Base = Factory<LrSchedule<T>, T, gr_lr_schedule_t>;

 public:
  static constexpr const char* kKind = "lr_schedule";
  static void fill(gr_lr_schedule_t& table) { table.value = value; }

 private:
  static int32_t value(void* self, const gr_lr_request_t* request, double* lr,
                       gr_error_t* err) noexcept {
    return guarded(err, [&] { *lr = Base::instance(self).value(*request); });
  }
};

}  // namespace gradrack::sdk
