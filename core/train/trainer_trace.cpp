// SPDX-License-Identifier: Apache-2.0
// Traced steps of a training run: timed runs, records, trace.json. See trainer.hpp.
//
// Tracing never ends a run: what a backend cannot time, or a disk not hold, is an event.
#include <fmt/format.h>

#include "core/state/atomic_file.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {

Status Trainer::run_program(Program& program, int64_t micro) {
  Executor& executor = *program.executor;
  if (timed_ != nullptr) {
    TimedRun run{executor.shared_plan(), {}};
    GR_TRY(executor.run_timed(&run.times));
    timed_->push_back(std::move(run));
    return {};
  }
  if (!trace_.on()) return executor.launch();
  StepTimeline measured;
  const Status done = executor.run_timed(&measured);
  if (done.code() == GR_UNSUPPORTED) {  // nothing was run
    trace_.stop();
    session_.events.emit({"trace_unsupported",
                          Level::kWarn,
                          "no step is traced from here on: " + done.message(),
                          {{"step", std::to_string(step_ + 1)}, {"reason", done.message()}}});
    return executor.launch();
  }
  GR_TRY(done);
  trace_.add_run(executor.shared_plan(), micro, std::move(measured));
  return {};
}

Result<StepReport> Trainer::timed_step(std::vector<TimedRun>* runs) {
  timed_ = runs;
  Result<StepReport> report = step();
  timed_ = nullptr;
  return report;
}

void Trainer::report_trace() {
  if (!trace_.on()) return;
  const StepTimes times = trace_.end();
  MetricsRecord record;
  record.step = step_;
  record.tokens = tokens_;
  record.values = metric_values(times);
  metrics_->record(record);
  progress_->clear();
  session_.events.emit(
      {"step_time", Level::kInfo, text_of(times), {{"step", std::to_string(step_)}}});
  if (!trace_.more()) write_trace();
}

void Trainer::write_trace() {
  trace_.stop();  // a step that failed is left out
  const int64_t steps = trace_.steps();
  if (steps == 0) return;
  const std::string path = folder_->trace_path();
  const Status written = write_file(path, timeline_trace(trace_.timeline()));
  trace_ = StepTrace();  // written once
  if (!written.ok()) {
    session_.events.emit({"trace_error",
                          Level::kWarn,
                          written.message() + "; training goes on without a trace",
                          {{"path", path}}});
    return;
  }
  session_.events.emit({"trace",
                        Level::kInfo,
                        fmt::format("trace of {} step{} in {}: open it in ui.perfetto.dev or "
                                    "chrome://tracing",
                                    steps, steps == 1 ? "" : "s", path),
                        {{"path", path}, {"steps", std::to_string(steps)}}});
}

}  // namespace gradrack
