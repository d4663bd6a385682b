// SPDX-License-Identifier: Apache-2.0
// LrSchedule<T>: the factory of a learning-rate schedule class. See plugin.hpp for the constants.
//
// T needs:  double value(const gr_lr_request_t& request) const;   // [any]
// Invariant: a pure function of the request and the options.
#pragma once

#include "gradrack/lr_schedule.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

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
