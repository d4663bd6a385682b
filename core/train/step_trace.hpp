// SPDX-License-Identifier: Apache-2.0
// StepTrace: where the time of some steps goes, by what the host does and by what streams run.
//
// Beside the training loop, which tells it of each change of phase and hands it the measured runs
// (exec/timeline.hpp). Invariant: while a step is traced the host is in exactly one phase, so
// phases add up to the step; within a run each stream is busy with a kind of task or idle. It costs
// one comparison a phase while nothing is traced. One thread. [exec]
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/exec/timeline.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/task_kind.hpp"
#include "core/schedule/timeline.hpp"

namespace gradrack {

/// What the host does in a step.
enum class HostPhase {
  kData,      // batches are described and read
  kPlan,      // the plan of the step is found, or made
  kScalars,   // rates, counts, weights are written
  kRun,       // tasks are launched and waited for
  kRead,      // results are read
  kEvaluate,  // evaluations, with previews
  kSave,      // checkpoints
  kLog        // metrics, progress
};
inline constexpr size_t kHostPhases = 8;

/// "data", "plan", ...
const char* host_phase_name(HostPhase phase);

/// One traced step, in ns. The kinds and `idle` are means over the streams that it used.
struct StepTimes {
  int64_t step = 0;
  int64_t wall = 0;                            ///< from its begin to its end, by the host's clock
  std::array<int64_t, kHostPhases> host = {};  ///< of kRun: what measuring itself took, no more
  std::array<double, kTaskKinds> kinds = {};
  double idle = 0;
  std::vector<std::pair<std::string, int64_t>> idle_by_stream = {};

  /// Of all parts, which is the wall time but for errors of measurement.
  double sum() const;
};

/// In ms, by name: "time/step_ms", each part ("time/forward_ms", "time/idle_ms", "time/data_ms",
/// "time/measure_ms", ...), "time/idle_ms/cpu.1" of each stream.
std::vector<std::pair<std::string, double>> metric_values(const StepTimes& times);
/// "step 3: 12.400 ms = forward 4.100 + ... + log 0.020; idle by stream: cpu 0.300".
std::string text_of(const StepTimes& times);

class StepTrace {
 public:
  using Clock = int64_t (*)();

  /// Traces nothing.
  StepTrace() = default;
  /// Traces `count` steps from `first` on, counted from 1. `clock`: the host's, in ns.
  StepTrace(int64_t first, int64_t count, Clock clock = host_clock_ns)
      : first_(first), left_(count), clock_(clock) {}

  /// A step begins, in phase kData; from here on on() says whether it is traced.
  void begin(int64_t step);
  bool on() const { return on_; }
  void enter(HostPhase phase) {
    if (on_) switch_to(phase);
  }
  /// What ran of `plan` while the host was in kRun.
  void add_run(std::shared_ptr<const Plan> plan, int64_t microbatch, StepTimeline measured);
  /// The step is over.
  StepTimes end();
  /// Traces no more, the step that is on included. What was traced before stays.
  void stop();

  /// Traced steps so far; whether more will come.
  int64_t steps() const { return steps_; }
  bool more() const { return left_ > 0; }
  /// A row of the host's phases, then one a stream; from the first traced step's begin on.
  Timeline timeline() const;

 private:
  struct Run {
    std::shared_ptr<const Plan> plan;
    int64_t microbatch = 0;
    StepTimeline measured;
  };
  void switch_to(HostPhase phase);
  void close_phase(int64_t now);
  void add_spans(const Run& run);

  int64_t first_ = 0, left_ = 0;
  Clock clock_ = host_clock_ns;
  bool on_ = false;
  StepTimes times_;  // of the step that is on
  HostPhase phase_ = HostPhase::kData;
  int64_t phase_start_ = 0, step_start_ = 0;
  std::vector<Run> runs_;
  // Of all traced steps, by the host's clock.
  int64_t steps_ = 0, origin_ = 0, end_ = 0;
  std::vector<TimelineSpan> host_;
  std::map<std::pair<std::string, uint32_t>, std::vector<TimelineSpan>> streams_;
};

}  // namespace gradrack
