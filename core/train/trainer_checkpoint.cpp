// SPDX-License-Identifier: Apache-2.0
// Where a run begins, and what it leaves to go on from: checkpoints, resume, weights to start with.
// See trainer.hpp.
#include <fmt/format.h>

#include "core/train/resume_rules.hpp"
#include "core/train/trainer.hpp"
#include "core/train/weights.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Status Trainer::open_folder() {
  const RunConfig& config = session_.config;
  const bool goes_on = resume_.has_value() && resume_->own;
  GR_ASSIGN(folder_,
            goes_on ? RunFolder::reopen(config.run.output, config.metrics_file, resume_->state.step,
                                        session_.events)
                    : RunFolder::prepare(config.run.output, config.metrics_file, session_.events));
  GR_TRY(folder_->save_config(to_yaml(config.root)));
  GR_TRY(
      metrics_->open(folder_->path(), folder_->metrics_path(), goes_on ? resume_->state.step : 0));
  checkpoints_ = std::make_unique<Checkpointer>(folder_->checkpoints_path(), config.checkpoint,
                                                goes_on ? resume_->state.run_id : new_run_id(),
                                                setup().model->instance.name(), session_.events);
  return {};
}

Status Trainer::load_start() {
  GR_ASSIGN(fingerprint_, programs_->feed().fingerprint(session_.config.run.batch_size));
  if (resume_.has_value()) return go_on(*resume_);
  const InitFrom& from = session_.config.run.init_from;
  if (from.file.empty()) return {};
  GR_TRY(load_weights(from, session_, *setup().model->choice, &programs_->store()));
  session_.events.emit({"init_from",
                        Level::kInfo,
                        fmt::format("the run begins with the weights of '{}'{}", from.file,
                                    from.mapping.empty() ? "" : " by " + from.mapping),
                        {{"weights", from.file}, {"mapping", from.mapping}}});
  return {};
}

Status Trainer::go_on(const ResumePoint& point) {
  const TrainerState& state = point.state;
  if (state.data_fingerprint != fingerprint_) {
    return Status(GR_FAILED_PRECONDITION,
                  fmt::format("the data is not that of '{}': its content, or how much there is, "
                              "differs; give the run its data back, or begin anew with --resume "
                              "never",
                              point.path));
  }
  GR_TRY(check_horizon(session_, state, point.path));
  GR_TRY(load_checkpoint(point.path, &programs_->store()));
  const std::vector<CountClass>& classes = programs_->planner().counts();
  for (size_t k = 0; k < classes.size(); ++k) {
    const auto count = state.counts.find(classes[k].scalar);
    if (count == state.counts.end()) {
      return io_error(
          fmt::format("'{}' has no count of updates '{}'", point.path, classes[k].scalar));
    }
    counts_[k] = count->second;
  }
  step_ = first_step_ = state.step;
  updates_ = state.updates;
  tokens_ = first_tokens_ = state.tokens;
  eval_loss_ = state.eval_loss;
  best_ = state.best;
  nonfinite_ = state.nonfinite;
  nonfinite_row_ = state.nonfinite_row;
  if (loss_scale_.has_value()) {
    if (!state.loss_scale.has_value()) {
      return io_error(fmt::format("'{}' has no loss scale to go on with", point.path));
    }
    GR_TRY(loss_scale_->restore(*state.loss_scale));
  }
  finished_ = state.finished && step_ == session_.config.run.max_steps;
  if (point.own) checkpoints_->set_saved(step_, finished_);
  session_.events.emit({"resumed",
                        Level::kInfo,
                        fmt::format("going on from step {} ('{}')", step_, point.path),
                        {{"step", std::to_string(step_)}, {"checkpoint", point.path}}});
  return {};
}

TrainerState Trainer::state() const {
  TrainerState state;
  state.run_id = checkpoints_->run_id();
  state.step = step_;
  state.updates = updates_;
  const std::vector<CountClass>& classes = programs_->planner().counts();
  for (size_t k = 0; k < classes.size(); ++k) state.counts[classes[k].scalar] = counts_[k];
  state.tokens = tokens_;
  state.next_batch = step_ * session_.config.run.accumulate_steps;
  state.eval_loss = eval_loss_;
  state.best = best_;
  state.finished = finished_;
  state.nonfinite = nonfinite_;
  state.nonfinite_row = nonfinite_row_;
  if (loss_scale_.has_value()) state.loss_scale = loss_scale_->state();
  state.data_fingerprint = fingerprint_;
  state.config = to_yaml(session_.config.root);
  return state;
}

Status Trainer::save_checkpoint() {
  return checkpoints_->save(programs_->store(), programs_->planner().evaluation_states(), state(),
                            evaluated_step_ == step_ ? eval_loss_ : std::nullopt);
}

Status Trainer::save_weights() {
  GR_ASSIGN(const WeightsCopy copy,
            read_weights(programs_->store(), programs_->planner().evaluation_states()));
  return folder_->save_weights(copy.tensors,
                               weights_metadata(step_, setup().model->instance.name()));
}

Status Trainer::save_end() {
  GR_TRY(save_checkpoint());
  const Status saved = checkpoints_->wait();
  const Status weights = save_weights();  // the disk may have room for these alone
  return saved.ok() ? weights : saved;
}

}  // namespace gradrack
