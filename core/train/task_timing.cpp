// SPDX-License-Identifier: Apache-2.0
// Task timing: see task_timing.hpp.
#include "core/train/task_timing.hpp"

#include <algorithm>

#include "core/base/stop_signal.hpp"

namespace gradrack {

namespace {

/// The first run of a plan touches its memory and lets libraries prepare: it is not counted.
constexpr int kWarmUps = 1;
constexpr size_t kMostRuns = 7;
/// A large step is timed less often: once at least.
constexpr int64_t kMostNs = INT64_C(2'000'000'000);

int64_t median(std::vector<int64_t> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// Calls `run` until there is enough to take a median of.
template <typename Run>
Status repeat(const Run& run) {
  for (int k = 0; k < kWarmUps; ++k) GR_TRY(run(true));
  const int64_t begin = host_clock_ns();
  for (size_t k = 0; k < kMostRuns; ++k) {
    GR_TRY(run(false));
    if (host_clock_ns() - begin > kMostNs || stop_signal() != 0) break;
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> time_tasks(Executor& executor) {
  std::vector<std::vector<int64_t>> times(executor.plan().tasks.size());
  StepTimeline timeline;
  GR_TRY(repeat([&](bool warm_up) -> Status {
    GR_TRY(executor.run_timed(&timeline));
    if (warm_up) return {};
    for (const TaskTime& each : timeline.tasks) {
      times[each.task].push_back(each.end_ns - each.start_ns);
    }
    return {};
  }));
  std::vector<int64_t> cost_ns;
  for (std::vector<int64_t>& of_task : times) cost_ns.push_back(median(std::move(of_task)));
  return cost_ns;
}

Result<int64_t> time_run(Executor& executor) {
  std::vector<int64_t> times;
  GR_TRY(repeat([&](bool warm_up) -> Status {
    const int64_t begin = host_clock_ns();
    GR_TRY(executor.run());
    if (!warm_up) times.push_back(host_clock_ns() - begin);
    return {};
  }));
  return median(std::move(times));
}

}  // namespace gradrack
