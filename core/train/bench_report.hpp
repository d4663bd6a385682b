// SPDX-License-Identifier: Apache-2.0
// BenchReport: what a benchmark of a run found, for people and for machines.
//
// Beside bench_command.cpp, which measures. Invariant: the text and the JSON say the same.
#pragma once

#include <string>
#include <vector>

#include "core/exec/timeline.hpp"
#include "core/schedule/task_kind.hpp"
#include "core/train/machine_peaks.hpp"

namespace gradrack {

/// Median, quartiles and least of some numbers.
struct Spread {
  double median = 0, low = 0, high = 0, least = 0;
};
Spread spread_of(std::vector<double> numbers);

/// Tasks of one operator in one step.
struct KernelTimes {
  std::string op;    ///< "gradrack.FusedMatMul", "copy"
  double tasks = 0;  ///< a step
  double ns = 0;     ///< a step, of all streams together
  double flops = 0;  ///< a step
  double bytes = 0;  ///< a step
};

struct BenchReport {
  int64_t steps = 0, warmup = 0;
  Spread step_ms;
  double targets_per_second = 0;
  int64_t planned_bytes = 0;         ///< announced before step 1
  int64_t resident_bytes = 0;        ///< most that the process had in memory
  int64_t timed_steps = 0;           ///< the three below are means of these
  std::vector<double> kind_ns;       ///< by GR_KIND_*: of all streams together
  std::vector<KernelTimes> kernels;  ///< the longest first
  MachinePeaks peaks;
};

/// Adds what ran of `plan` in one microbatch.
void add_times(const Plan& plan, const StepTimeline& timeline, BenchReport* report);
/// Turns sums over `timed_steps` into means, and sorts the kernels.
void finish_times(BenchReport* report);

/// The part of the roof that a kernel reaches: the time that its operations or its bytes would take
/// at peak, the larger of both, over the time that it took.
double roof_share(const KernelTimes& kernel, const MachinePeaks& peaks);

std::string bench_text(const BenchReport& report);
std::string bench_json(const BenchReport& report);

}  // namespace gradrack
