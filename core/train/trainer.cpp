// SPDX-License-Identifier: Apache-2.0
// The training loop: see trainer.hpp. Set-up and reporting are in trainer_setup.cpp and
// trainer_report.cpp.
#include "core/train/trainer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/train/commands.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Status Trainer::run() {
  const Status done = train();
  write_trace();  // however the run ended
  metrics_->close();
  return done;
}

Status Trainer::train() {
  const RunSection& run = session_.config.run;
  started_ = last_log_ = std::chrono::steady_clock::now();
  while (step_ < run.max_steps && stop_signal() == 0 && !out_of_time()) {
    trace_.begin(step_ + 1);
    Result<StepReport> report = step();
    if (report.status().code() == GR_CANCELLED && stop_signal() != 0) break;
    GR_TRY(report.status());
    const Status good = check(*report);
    if (!good.ok()) {
      GR_TRY(save_weights());  // as they were before the bad step
      progress_->finish();
      return good;
    }
    GR_TRY(after_step(*report));
    report_trace();
  }
  return finish();
}

Result<StepReport> Trainer::step() {
  const ThreadRole role(GR_THREAD_EXEC);
  ObjectiveSet had = 0;
  const Result<Program*> last = run_microbatches(&had);
  trace_.enter(HostPhase::kRun);
  const Status over = programs_->wait();  // the one wait of a step, however it ended
  GR_TRY(last.status());
  GR_TRY(over);
  return read_results(**last, had);
}

Result<Program*> Trainer::run_microbatches(ObjectiveSet* had) {
  const int64_t count = session_.config.run.accumulate_steps;
  Program* program = nullptr;
  for (int64_t micro = 0; micro < count; ++micro) {
    // Nothing but accumulators has changed so far: a stop costs the step, not the wait for it.
    if (micro > 0) GR_TRY(stopped_early("the step"));
    GR_ASSIGN(program, run_microbatch(micro, had));
  }
  return program;
}

Result<Program*> Trainer::run_microbatch(int64_t micro, ObjectiveSet* earlier) {
  const RunSection& run = session_.config.run;
  const RunRules& rules = programs_->rules();
  Feed& feed = programs_->feed();
  trace_.enter(HostPhase::kData);
  const int64_t number = step_ + 1, index = step_ * run.accumulate_steps + micro;
  GR_ASSIGN(const BatchDescription batch, feed.describe(GR_SPLIT_TRAIN, index, run.batch_size));
  StepVariant variant;
  variant.shape = {micro > 0, micro + 1 == run.accumulate_steps};
  variant.active = rules.active(number) & programs_->planner().batch_sets()[batch.set];
  variant.earlier = *earlier;
  variant.stretch = rules.stretch(number);
  variant.sizes = batch.sizes;
  *earlier |= variant.active;
  trace_.enter(HostPhase::kPlan);
  GR_ASSIGN(Program* const program, programs_->step(variant, micro));
  trace_.enter(HostPhase::kRun);
  GR_TRY(program->executor->wait_for_ports());
  trace_.enter(HostPhase::kData);
  GR_TRY(feed.fill(GR_SPLIT_TRAIN, index, run.batch_size, run.batch_size, program->inputs,
                   batch.sizes));
  trace_.enter(HostPhase::kScalars);
  GR_TRY(set_scalars(*program, variant.shape, micro));
  trace_.enter(HostPhase::kRun);
  GR_TRY(run_program(*program, micro));
  return program;
}

Status Trainer::set_scalars(Program& program, StepShape shape, int64_t micro) {
  Executor& executor = *program.executor;
  if (program.rng.has_value()) {
    const int64_t counters[] = {session_.config.run.seed, step_, micro};
    GR_TRY(executor.set_scalar(*program.rng, counters));
  }
  for (size_t k = 0; k < program.weights.size(); ++k) {
    if (!program.weights[k].has_value()) continue;
    GR_TRY(executor.set_scalar(*program.weights[k], programs_->rules().weights()[k]));
  }
  if (program.loss_scale.has_value()) {
    GR_TRY(executor.set_scalar(*program.loss_scale, loss_scale_->value()));
  }
  if (!shape.update) return {};
  for (size_t k = 0; k < counts_.size(); ++k) {
    if (!program.counts[k].has_value()) continue;
    GR_TRY(executor.set_scalar(*program.counts[k], static_cast<double>(counts_[k] + 1)));
  }
  return set_rates(program);
}

Result<StepReport> Trainer::read_results(const Program& program, ObjectiveSet had) {
  trace_.enter(HostPhase::kRead);
  const Executor& executor = *program.executor;
  StepReport report;
  GR_ASSIGN(report.loss, executor.read_scalar(*program.loss));
  GR_ASSIGN(report.grad_norm, executor.read_scalar(*program.grad_norm));
  GR_ASSIGN(report.targets, executor.read_scalar(*program.targets));
  GR_ASSIGN(const double ok, executor.read_scalar(*program.ok));
  for (size_t k = 0; k < means_.size(); ++k) {
    means_[k] = std::numeric_limits<double>::quiet_NaN();
    if (!program.means[k].has_value()) continue;
    GR_ASSIGN(means_[k], executor.read_scalar(*program.means[k]));
  }
  report.updated = ok != 0;
  GR_TRY(observe(&report));
  ++step_;
  if (!report.updated) {
    GR_TRY(program.executor->take_back());  // updates may have run before the norm was known
    return report;
  }
  ++updates_;
  // What no objective of this step reaches was skipped, and is not counted.
  for (size_t k = 0; k < counts_.size(); ++k) {
    if ((programs_->planner().counts()[k].reach & had) != 0) ++counts_[k];
  }
  return report;
}

// A step without targets says nothing about the scale.
Status Trainer::observe(StepReport* report) {
  report->finite = std::isfinite(report->loss) && std::isfinite(report->grad_norm);
  if (report->targets == 0) return {};
  if (!report->finite) ++nonfinite_;
  nonfinite_row_ = report->finite ? 0 : nonfinite_row_ + 1;
  if (!loss_scale_.has_value()) return {};
  report->loss_scale = loss_scale_->value();
  scale_status_ = loss_scale_->observe(report->finite);
  return scale_status_.code() == GR_NONFINITE ? Status() : scale_status_;
}

// The rate is a pure function of the number of updates made, so what is logged is what was used and
// a skipped step does not advance it.
Status Trainer::set_rates(Program& program) {
  const gr_lr_schedule_t& schedule = setup().lr_schedule->instance.table();
  gr_lr_request_t request = {};
  request.struct_size = sizeof request;
  request.update = updates_;
  request.max_updates = session_.config.run.max_steps;
  for (size_t k = 0; k < rates_.size(); ++k) {
    request.base_lr = programs_->planner().groups()[k].lr;
    gr_error_t err = {};
    GR_TRY(status_from(schedule.value(schedule.self, &request, &rates_[k], &err), err));
    if (!program.rates[k].has_value()) continue;
    GR_TRY(program.executor->set_scalar(*program.rates[k], rates_[k]));
  }
  return {};
}

Status Trainer::check(const StepReport& report) {
  if (report.updated) {
    tell_scale(report);
    return {};
  }
  if (report.targets == 0) {
    session_.events.emit({"skipped_step",
                          Level::kWarn,
                          fmt::format("step {} has no targets: skipped", step_),
                          {{"reason", "no_target_tokens"}}});
    return {};
  }
  return check_nonfinite(report);
}

Status Trainer::check_nonfinite(const StepReport& report) {
  constexpr int64_t kMostInARow = 100;  // where no loss scale has a limit of its own
  const double loss = std::isnan(report.loss) ? std::fabs(report.loss) : report.loss;
  const double norm = std::isnan(report.grad_norm) ? std::fabs(report.grad_norm) : report.grad_norm;
  const std::string what =
      fmt::format("step {}: loss is {}, gradient norm is {}", step_, loss, norm);
  const bool skips = loss_scale_.has_value()
                         ? scale_status_.ok()
                         : !session_.config.run.error_if_nonfinite && nonfinite_row_ < kMostInARow;
  if (skips) {
    tell_skipped(what);
    return {};
  }
  std::string after = "; ";
  if (nonfinite_row_ > 1)
    after += fmt::format("{} such steps in a row were skipped; ", nonfinite_row_);
  if (!scale_status_.ok()) after += scale_status_.message() + "; ";
  return Status(GR_NONFINITE,
                what + after +
                    "the weights saved are those from before it. Lower optimizer.lr, set "
                    "run.max_grad_norm, or look at the data of this step");
}

Status Trainer::after_step(const StepReport& report) {
  const RunSection& run = session_.config.run;
  tokens_ += static_cast<int64_t>(report.targets);
  interval_tokens_ += static_cast<int64_t>(report.targets);
  const bool last = step_ == run.max_steps;
  bool best = false;
  if (run.eval_interval > 0 && step_ % run.eval_interval == 0 && !last) {
    trace_.enter(HostPhase::kEvaluate);
    GR_ASSIGN(best, evaluate_now());
  }
  trace_.enter(HostPhase::kLog);
  if (step_ % run.log_interval == 0 || step_ == 1 || last) GR_TRY(log_step(report));
  const CheckpointSection& checkpoint = session_.config.checkpoint;
  const bool due = checkpoint.interval > 0 && !last &&
                   (step_ % checkpoint.interval == 0 || (best && checkpoint.keep_best > 0));
  if (due) {
    trace_.enter(HostPhase::kSave);
    GR_TRY(save_checkpoint());
    trace_.enter(HostPhase::kLog);
  }
  show_progress(report);
  return {};
}

Result<bool> Trainer::evaluate_now() {
  GR_ASSIGN(const Evaluation evaluation, evaluate(*programs_));
  if (evaluation.partial) return false;
  eval_loss_ = evaluation.loss;
  evaluated_step_ = step_;
  const bool best = !best_.has_value() || evaluation.loss < *best_;
  if (best) best_ = evaluation.loss;
  report_evaluation(evaluation);
  if (previews_.wanted()) GR_TRY(previews_.write(*programs_, *folder_, step_));
  return best;
}

bool Trainer::out_of_time() const {
  const int64_t limit = session_.config.run.max_time_s;
  return limit > 0 && std::chrono::steady_clock::now() - made_ >= std::chrono::seconds(limit);
}

Status Trainer::finish() {
  const RunSection& run = session_.config.run;
  const bool whole = step_ >= run.max_steps;
  if (whole && !finished_ && stop_signal() == 0) {
    if (programs_->has_evaluation()) GR_TRY(evaluate_now().status());
    finished_ = stop_signal() == 0;
  }
  GR_TRY(save_end());
  report_end();
  if (stop_signal() == 0 && whole) return {};
  const std::string why = stop_signal() != 0 ? fmt::format("by signal {}", stop_signal())
                                             : "because run.max_time is over";
  return Status(GR_CANCELLED, fmt::format("stopped {} after step {}; --resume auto goes on from "
                                          "there, results are in {}",
                                          why, step_, folder_->path()));
}

}  // namespace gradrack
