// SPDX-License-Identifier: Apache-2.0
// Metrics<T>: the factory of a metrics sink class. See plugin.hpp for the constants.
//
// T needs:  void open(const gr_metrics_run_t& run);                                       // [main]
//           void record(const gr_metrics_record_t& record);                               // [main]
// Optional: void event(const gr_metrics_event_t& event);                                  // [main]
//           void flush();                                                                 // [main]
//           void close();                                                                 // [main]
// Invariant: what a member throws is said once by the host and ends no run.
#pragma once

#include <span>

#include "gradrack/metrics.h"
#include "gradrack/plugin.hpp"

namespace gradrack::sdk {

/// The figures of a record.
inline std::span<const gr_metric_t> values_of(const gr_metrics_record_t& record) {
  return {record.values, record.value_count};
}

template <typename T>
class Metrics : public Factory<Metrics<T>, T, gr_metrics_t> {
  using Base = Factory<Metrics<T>, T, gr_metrics_t>;

 public:
  static constexpr const char* kKind = "metrics";
  static void fill(gr_metrics_t& table) {
    table.open = open;
    table.record = record;
    if constexpr (requires { &T::event; }) table.event = event;
    if constexpr (requires { &T::flush; }) table.flush = flush;
    if constexpr (requires { &T::close; }) table.close = close;
  }

 private:
  static int32_t open(void* self, const gr_metrics_run_t* run, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).open(*run); });
  }
  static int32_t record(void* self, const gr_metrics_record_t* values, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).record(*values); });
  }
  static int32_t event(void* self, const gr_metrics_event_t* what, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).event(*what); });
  }
  static int32_t flush(void* self, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).flush(); });
  }
  static int32_t close(void* self, gr_error_t* err) noexcept {
    return guarded(err, [&] { Base::instance(self).close(); });
  }
};

}  // namespace gradrack::sdk
