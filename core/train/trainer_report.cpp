// SPDX-License-Identifier: Apache-2.0
// What a training run tells: start, metrics, progress, evaluations, end. See trainer.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/machine.hpp"
#include "core/base/text.hpp"
#include "core/plan/memory_map.hpp"
#include "core/plugin/host_table.hpp"
#include "core/state/atomic_file.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void Trainer::report_start() {
  report_environment();
  write_memory_maps();
  int64_t count = 0;
  for (const ParameterFacts& parameter : programs_->planner().parameters()) {
    int64_t elements = 1;
    for (const int64_t dim : parameter.dims) elements *= dim;
    count += elements;
  }
  EventSink& events = session_.events;
  events.emit({"model", Level::kInfo,
               fmt::format("model {}: {} parameters in {} tensors", setup().model->instance.name(),
                           count, programs_->planner().parameters().size())});
  if (programs_->feed().info().summary != nullptr) {
    events.emit({"data", Level::kInfo, std::string("data ") + programs_->feed().info().summary});
  }
  for (const OptimizerGroup& group : programs_->planner().groups()) {
    events.emit({"group", Level::kInfo,
                 fmt::format("optimizer {} {}: {} tensors, lr {}", group.name(), group.group.name,
                             group.group.members.size(), group.lr)});
  }
  for (const Programs::NamedPlan& each : programs_->plans()) {
    for (const DeviceSummary& summary : each.plan->summary) {
      if (summary.native + summary.decomposed + summary.handed_on_count() == 0) continue;
      events.emit({"placement", Level::kInfo, each.name + ": " + summary.text()});
    }
    const std::string traffic = traffic_text(*each.plan);
    if (traffic.empty()) continue;
    events.emit({"transfers", Level::kInfo, each.name + ": between devices, a step: " + traffic});
  }
  for (const std::string& note : programs_->notes()) {
    events.emit({"not_recorded", Level::kInfo, note});
  }
  events.emit({"memory",
               Level::kInfo,
               fmt::format("memory {} in all ({} bytes), taken before step 1",
                           human_bytes(programs_->planned_bytes()), programs_->planned_bytes()),
               {{"bytes", std::to_string(programs_->planned_bytes())}}});
}

// For whoever reads the record later: not shown while the run goes on.
void Trainer::report_environment() {
  const MachineFacts facts = machine_facts();
  session_.events.emit({"environment",
                        Level::kDebug,
                        fmt::format("gradrack {} on {}, {} processors allowed", host_version(),
                                    facts.processor, facts.processors_allowed),
                        {{"run", session_.config.run.name},
                         {"version", host_version()},
                         {"system", facts.system},
                         {"processor", facts.processor},
                         {"instructions", facts.instructions},
                         {"processors", std::to_string(facts.processors)},
                         {"processors_allowed", std::to_string(facts.processors_allowed)},
                         {"memory", human_bytes(facts.memory_bytes)}}});
}

// plan.json is for reports: a run goes on without it.
void Trainer::write_memory_maps() {
  constexpr size_t kMostBlocks = 4000;
  std::vector<MemoryMap> maps;
  for (const Programs::NamedPlan& each : programs_->plans()) {
    maps.push_back(memory_map(each.name, *each.plan, kMostBlocks));
  }
  const Status written = write_file(folder_->plan_path(), memory_maps_json(maps));
  if (written.ok()) return;
  session_.events.emit({"plan_file_error",
                        Level::kWarn,
                        written.message() + "; training goes on without it",
                        {{"path", folder_->plan_path()}}});
}

Status Trainer::log_step(const StepReport& report) {
  const double interval = seconds_since(last_log_);
  last_log_ = std::chrono::steady_clock::now();
  tokens_per_second_ = interval > 0 ? static_cast<double>(interval_tokens_) / interval : 0;
  interval_tokens_ = 0;
  MetricsRecord record;
  record.step = step_;
  record.tokens = tokens_;
  record.values = {{"train/loss", report.loss},
                   {"grad_norm", report.grad_norm},
                   {"tokens_per_second", tokens_per_second_},
                   {"updates", static_cast<double>(updates_)},
                   {"memory/peak_bytes", static_cast<double>(programs_->planned_bytes())}};
  if (loss_scale_.has_value()) record.values.emplace_back("loss_scale", report.loss_scale);
  if (loss_scale_.has_value() || !session_.config.run.error_if_nonfinite) {
    record.values.emplace_back("skipped_steps", static_cast<double>(nonfinite_));
  }
  for (size_t k = 0; k < means_.size() && means_.size() > 1; ++k) {
    if (std::isnan(means_[k])) continue;  // it had no part in this step
    record.values.emplace_back("train/" + objective_loss_name(programs_->rules().objectives()[k]),
                               means_[k]);
  }
  // The default groups share the section's rate: "lr"; each rule of the run file has its own name.
  bool has_default = false;
  for (size_t k = 0; k < rates_.size(); ++k) {
    const Group& group = programs_->planner().groups()[k].group;
    if (group.rule >= 0) {
      record.values.emplace_back(fmt::format("lr/group {}", group.rule), rates_[k]);
    } else if (!has_default) {
      record.values.emplace_back("lr", rates_[k]);
      has_default = true;
    }
  }
  metrics_->record(record);
  return {};
}

void Trainer::tell_skipped(const std::string& what) {
  std::vector<std::pair<std::string, std::string>> fields = {{"reason", "nonfinite"}};
  std::string text = what + ": skipped, nothing changed";
  if (loss_scale_.has_value()) {
    const std::string scale = fmt::format("{}", loss_scale_->value());
    text += "; the loss scale is now " + scale;
    fields.emplace_back("loss_scale", scale);
  }
  session_.events.emit({"skipped_step", Level::kWarn, text, fields});
}

// A scale that grew. (One that shrank is told with the step that was skipped.)
void Trainer::tell_scale(const StepReport& report) {
  if (!loss_scale_.has_value() || loss_scale_->value() == report.loss_scale) return;
  const std::string scale = fmt::format("{}", loss_scale_->value());
  session_.events.emit({"loss_scale",
                        Level::kInfo,
                        fmt::format("step {}: the loss scale is now {}", step_, scale),
                        {{"loss_scale", scale}}});
}

void Trainer::show_progress(const StepReport& report) {
  const RunSection& run = session_.config.run;
  Progress progress;
  progress.step = step_;
  progress.max_steps = run.max_steps;
  progress.loss = report.loss;
  if (best_.has_value()) progress.best_eval = *best_;
  progress.lr = rates_.empty() ? 0 : rates_.front();
  progress.memory_bytes = programs_->planned_bytes();
  progress.elapsed_s = seconds_since(started_);
  progress.tokens_per_second =
      progress.elapsed_s > 0 ? static_cast<double>(tokens_ - first_tokens_) / progress.elapsed_s
                             : 0;
  progress.left_s = progress.elapsed_s / static_cast<double>(step_ - first_step_) *
                    static_cast<double>(run.max_steps - step_);
  progress_->update(progress);
}

void Trainer::report_evaluation(const Evaluation& evaluation) {
  const double loss = evaluation.loss;
  MetricsRecord record;
  record.step = step_;
  record.tokens = tokens_;
  record.values = {{"eval/loss", loss}, {"eval/targets", evaluation.targets}};
  for (size_t k = 0; k < evaluation.objectives.size() && evaluation.objectives.size() > 1; ++k) {
    if (evaluation.objectives[k].targets == 0) continue;
    record.values.emplace_back("eval/" + objective_loss_name(programs_->rules().objectives()[k]),
                               evaluation.objectives[k].mean());
  }
  metrics_->record(record);
  progress_->clear();
  session_.events.emit({"evaluation",
                        Level::kInfo,
                        fmt::format("step {}: validation loss {:.4f}{}", step_, loss,
                                    best_.has_value() && loss <= *best_ ? " (best)" : ""),
                        {{"step", std::to_string(step_)}, {"loss", fmt::format("{}", loss)}}});
  metrics_->flush();
}

void Trainer::report_plans() {
  const Machine& machine = *setup().machine;
  const PlanCacheStatistics plans = machine.plans.statistics();
  const SegmentStatistics segments = machine.segments->statistics();
  session_.events.emit({"plans",
                        Level::kInfo,
                        "plans: " + machine.plans_text(),
                        {{"builds", std::to_string(plans.builds)},
                         {"rebinds", std::to_string(plans.rebinds)},
                         {"hits", std::to_string(plans.hits)},
                         {"waits", std::to_string(plans.waits)},
                         {"evictions", std::to_string(plans.evictions)},
                         {"build_ns", std::to_string(plans.build_ns)},
                         {"segments_built", std::to_string(segments.built)},
                         {"segments_reused", std::to_string(segments.reused)},
                         {"kernels", std::to_string(segments.kernels)}}});
}

void Trainer::report_end() {
  progress_->finish();
  report_plans();
  const double elapsed = seconds_since(started_);
  const int64_t used = programs_->allocated_bytes();
  session_.events.emit(
      {"end",
       Level::kInfo,
       fmt::format(
           "{} steps in {:.1f} s ({:.0f} tokens/s){}; memory {} ({} bytes); results in {}",
           step_ - first_step_, elapsed,
           elapsed > 0 ? static_cast<double>(tokens_ - first_tokens_) / elapsed : 0,
           eval_loss_.has_value() ? fmt::format(", validation loss {:.4f}", *eval_loss_) : "",
           human_bytes(used), used, folder_->path()),
       {{"bytes", std::to_string(used)}}});
}

}  // namespace gradrack
