// SPDX-License-Identifier: Apache-2.0
// StepTimeline: when each task of a run began and ended, measured on the devices.
//
// Executor::run_timed fills it, by gr.timing/1 of the backends: a mark before and behind each task.
// Whoever recomputes a schedule takes task times from it, whoever draws a step the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "core/exec/action.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

/// A task of the plan. Where tasks of a lane follow each other at once, one's end and the next
/// one's start are apart by no more than the marks between them.
struct TaskTime {
  uint32_t task = 0;
  uint32_t lane = 0;  ///< index into the plan's schedule.lanes
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// All times in ns of the host's monotonic clock. Those of a device that has another clock were
/// shifted by what lay between the two when the run began; they err by the time of one
/// synchronisation.
struct StepTimeline {
  int64_t start_ns = 0;         ///< of the whole run(): before its first launch
  int64_t end_ns = 0;           ///< all streams are empty
  std::vector<TaskTime> tasks;  ///< in order of start
};

/// ns of the host's monotonic clock, now. [any]
int64_t host_clock_ns();

/// The steps of an executor with a mark before and behind each. The executor makes one on its first
/// timed run and keeps it.
class TimedSteps {
 public:
  /// `plan` names the devices; it and `steps` stay where they are. GR_UNSUPPORTED: names the
  /// backend that does not offer gr.timing/1. Errors: those of backends. [plan]
  static Result<std::unique_ptr<TimedSteps>> make(const Plan& plan, std::span<const Step> steps);

  /// As plain_actions(), with the marks; they point into the steps.
  std::span<const Action> actions() const { return actions_; }
  /// Finds out what lies between the clocks of devices and host. Their streams are empty. [exec]
  Status compare_clocks();
  /// Reads all marks once the streams are empty. [exec]
  Status read(std::vector<TaskTime>* out);

 private:
  /// Owner of a mark. [plan]
  class Mark {
   public:
    Mark(const Device* device, const gr_timing_t* timing, gr_mark_t* handle)
        : device_(device), timing_(timing), handle_(handle) {}
    Mark(Mark&& other) noexcept
        : device_(other.device_), timing_(other.timing_), handle_(other.handle_) {
      other.handle_ = nullptr;
    }
    Mark& operator=(Mark&&) = delete;
    ~Mark();
    gr_mark_t* get() const { return handle_; }

   private:
    const Device* device_;
    const gr_timing_t* timing_;
    gr_mark_t* handle_;
  };
  /// A device with tasks.
  struct Clock {
    const Device* device = nullptr;
    const gr_timing_t* timing = nullptr;
    gr_stream_t* stream = nullptr;  // one of it
    std::unique_ptr<Mark> zero;     // by which it is compared
    int64_t ahead_ns = 0;           // of the device's clock minus the host's
  };

  TimedSteps(const Plan& plan, std::span<const Step> steps) : plan_(plan), steps_(steps) {}
  Status add_clock(const Step& step);
  Result<Mark> make_mark(const Clock& clock) const;
  const Clock& clock_of(const Step& step) const;
  Action mark_action(const Step& step, const Mark& mark) const;

  const Plan& plan_;
  std::span<const Step> steps_;
  std::vector<Clock> clocks_;
  std::vector<Mark> marks_;  // of each step: before it, behind it
  std::vector<Action> actions_;
};

}  // namespace gradrack
