// SPDX-License-Identifier: Apache-2.0
// `gradrack bench`: how long a step of a run takes, and what of it takes how long.
//
// Steps are timed whole, as in training, then some of them task by task. Nothing of the run's
// folder is touched, no weights are kept.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "core/train/bench_report.hpp"
#include "core/train/commands.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {

namespace {

/// A folder for what a trainer writes, gone at the end.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("gradrack-bench-{}", getpid())) {
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

int64_t resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

Status time_steps(Trainer& trainer, const BenchRequest& request, BenchReport* report) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  double targets = 0, seconds = 0;
  for (int64_t k = 0; k < request.warmup + request.steps; ++k) {
    const Clock::time_point begin = Clock::now();
    GR_ASSIGN(const StepReport step, trainer.step());
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (stop_signal() != 0) return stopped_early("the benchmark");
    if (k < request.warmup) continue;
    all.push_back(1e3 * took.count());
    targets += step.targets;
    seconds += took.count();
  }
  report->steps = request.steps;
  report->warmup = request.warmup;
  report->step_ms = spread_of(std::move(all));
  report->targets_per_second = seconds > 0 ? targets / seconds : 0;
  report->planned_bytes = trainer.programs().planned_bytes();
  report->resident_bytes = resident_bytes();
  return {};
}

Status time_tasks(Trainer& trainer, const BenchRequest& request, BenchReport* report) {
  for (int64_t k = 0; k <= request.timed && stop_signal() == 0; ++k) {
    std::vector<TimedRun> runs;
    GR_TRY(trainer.timed_step(&runs).status());
    if (k == 0) continue;  // it makes what the clocks need
    ++report->timed_steps;
    for (const TimedRun& run : runs) add_times(*run.plan, run.times, report);
  }
  finish_times(report);
  GR_ASSIGN(report->peaks, measure_peaks(trainer.setup().device_list()));
  return {};
}

}  // namespace

Status run_bench(Session& session, const BenchRequest& request) {
  const StopSignals stops;
  const ScratchFolder folder;
  session.config.run.output = folder.path();
  session.config.run.resume = "never";
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(session));
  BenchReport report;
  GR_TRY(time_steps(*trainer, request, &report));
  const Status timed = time_tasks(*trainer, request, &report);
  if (timed.code() == GR_UNSUPPORTED) {
    report.timed_steps = 0;
    session.events.emit(
        {"trace_unsupported", Level::kWarn, "no times by kernel: " + timed.message()});
  } else {
    GR_TRY(timed);
  }
  std::fputs((request.json ? bench_json(report) : bench_text(report)).c_str(), stdout);
  return stopped_early("the benchmark");
}

}  // namespace gradrack
