// SPDX-License-Identifier: Apache-2.0
// ScheduleCache: task times of earlier runs, a file for each plan.
//
// Between a run that orders its tasks by measured times and the next one like it, which then
// measures nothing. A file is found by the plan's key, this build and this machine's processor, and
// believed where it says the same of itself and names the plan's tasks; what is in it changes an
// order, never a result. Invariant: files appear whole; one that makes no sense is passed over with
// an event, and no error of the cache ends a run. The folder may be removed at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/plan/key.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

/// What was measured of a plan.
struct TaskTimes {
  std::vector<int64_t> cost_ns;  ///< of each task of the plan's table
  int64_t measured_ns = 0;       ///< of a whole run in the order that followed; 0: was not measured
  int64_t program_order_ns = 0;  ///< of a whole run in program order
};

class ScheduleCache {
 public:
  /// `folder` is made where it is missing; empty: nothing is found and nothing kept. One that
  /// cannot be used is an event "schedule_cache" when something is to be kept.
  ScheduleCache(std::string folder, EventSink& events)
      : folder_(std::move(folder)), events_(events) {}

  /// schedules/ in the folder of caches that the environment names; "" when there is none.
  static std::string default_folder();

  /// The times kept for the plan of `key`. A file that is damaged or of other tasks is an event.
  std::optional<TaskTimes> find(const PlanKey& key, const Plan& plan);
  /// Keeps `times` with the order that `plan` has by them.
  void keep(const PlanKey& key, const Plan& plan, const TaskTimes& times);
  /// "" where nothing is kept.
  std::string file_of(const PlanKey& key) const;

 private:
  void pass_over(const std::string& path, const std::string& reason);

  std::string folder_;
  EventSink& events_;
};

}  // namespace gradrack
