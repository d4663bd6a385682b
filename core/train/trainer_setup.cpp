// SPDX-License-Identifier: Apache-2.0
// Set-up of a training run: plugins, plans, memory, run folder. See trainer.hpp.
#include "core/base/log.hpp"
#include "core/precision/extensions.hpp"
#include "core/train/commands.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {

Result<std::unique_ptr<Trainer>> Trainer::make(Session& session, std::shared_ptr<Machine> machine) {
  std::unique_ptr<Trainer> trainer(new Trainer(session));
  GR_TRY(trainer->prepare(std::move(machine)));
  return trainer;
}

Status Trainer::prepare(std::shared_ptr<Machine> machine) {
  const RunConfig& config = session_.config;
  const RunSection& run = config.run;
  GR_ASSIGN(metrics_, MetricsWriter::make(session_));
  GR_ASSIGN(resume_, find_resume_point(session_));
  GR_ASSIGN(programs_, Programs::make(session_, std::move(machine)));
  GR_TRY(programs_->plan_training());
  GR_TRY(programs_->plan_evaluations());
  GR_TRY(programs_->keep_limit());
  GR_TRY(programs_->check_limit());
  GR_ASSIGN(previews_, Previews::make(programs_->setup().data->instance, config.previews));
  // The folder comes before the memory: an unwritable one should cost nothing.
  GR_TRY(open_folder());
  GR_TRY(programs_->order_by_times(true));
  GR_TRY(programs_->allocate());
  if (config.trace_steps > 0) trace_ = StepTrace(config.trace_from_step, config.trace_steps);
  const gr_loss_scale_t* const scale =
      loss_scale_of(programs_->setup().precision->instance.table());
  if (scale != nullptr) {
    GR_ASSIGN(loss_scale_, LossScale::make(*scale));
  }
  rates_.resize(programs_->planner().groups().size());
  counts_.resize(programs_->planner().counts().size());
  means_.resize(programs_->rules().objectives().size());
  GR_TRY(load_start());
  if (config.prefetch > 0) {
    programs_->feed().prepare_ahead(run.batch_size, config.prefetch, config.data_workers);
  }
  GR_TRY(stopped_early("the set-up"));
  // Lines for machines are not mixed with lines for people.
  const bool quiet = log_is_quiet() || log_format() == LogFormat::kJson;
  progress_.emplace(stderr, progress_options(stderr, quiet, run.log_interval));
  report_start();
  return {};
}

Status run_train(Session& session, const TrainRequest& request) {
  const StopSignals stops;
  set_stop_grace(session.config.checkpoint.grace_s);
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(session));
  if (request.strict_plans) trainer->setup().machine->plans.set_strict(true);
  if (request.fresh_plans) trainer->programs().plan_afresh();
  return trainer->run();
}

}  // namespace gradrack
