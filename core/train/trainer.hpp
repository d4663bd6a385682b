// SPDX-License-Identifier: Apache-2.0
// Trainer: the training loop. Read trainer.cpp first to see what a run does.
#pragma once

#include <chrono>
#include <memory>

#include "core/precision/loss_scale.hpp"
#include "core/state/progress.hpp"
#include "core/state/run_folder.hpp"
#include "core/train/checkpointer.hpp"
#include "core/train/evaluate.hpp"
#include "core/train/metrics_writer.hpp"
#include "core/train/previews.hpp"
#include "core/train/resume.hpp"
#include "core/train/step_trace.hpp"

namespace gradrack {

/// What one optimizer step gave.
struct StepReport {
  double loss = 0;       ///< weighted sum of the means of its objectives
  double grad_norm = 0;  ///< before clipping
  double targets = 0;
  double loss_scale = 1;  ///< that it was made with
  bool updated = false;   ///< false: skipped, nothing changed
  /// Loss and gradients were. One that was not and had targets is an error, or with a loss scale
  /// or run.error_if_nonfinite off, a step that is skipped.
  bool finite = true;
};

/// What ran of a microbatch, and when.
struct TimedRun {
  std::shared_ptr<const Plan> plan;
  StepTimeline times;
};

class Trainer {
 public:
  /// Chooses plugins, plans every program, allocates and initialises. Nothing is written but the
  /// run folder. Trainers of one process may share a `machine`, and then run on a thread each; the
  /// session that it was made with outlives them all. [main]
  static Result<std::unique_ptr<Trainer>> make(Session& session,
                                               std::shared_ptr<Machine> machine = nullptr);

  /// Trains to max_steps, to a stop signal or to max_time; evaluates, logs and saves on the way.
  /// GR_CANCELLED: it stopped before its end, and is saved. [main]
  Status run();

  /// One optimizer step: all its microbatches. Allocates nothing. [exec]
  Result<StepReport> step();

  /// step(), timed task by task: adds what ran of each microbatch. The same bits. GR_UNSUPPORTED
  /// names the backend that cannot; a microbatch may have run. [exec]
  Result<StepReport> timed_step(std::vector<TimedRun>* runs);

  Programs& programs() { return *programs_; }
  const Setup& setup() const { return programs_->setup(); }
  int64_t steps() const { return step_; }
  /// The loss scale of a precision that has one, else nullptr. Its state is part of what a resumed
  /// run has to restore, beside the counts of steps and updates. [main]
  LossScale* loss_scale() { return loss_scale_.has_value() ? &*loss_scale_ : nullptr; }
  /// Steps that were skipped because their gradients were not finite.
  int64_t nonfinite_steps() const { return nonfinite_; }
  /// Means of the last step's objectives, without their weights; NaN: it had no part.
  const std::vector<double>& objective_means() const { return means_; }

 private:
  explicit Trainer(Session& session) : session_(session) {}
  Status prepare(std::shared_ptr<Machine> machine);
  /// All of a step; `had` gains their objectives. They need not be over.
  Result<Program*> run_microbatches(ObjectiveSet* had);
  /// Launches one microbatch; `earlier` gains its objectives.
  Result<Program*> run_microbatch(int64_t micro, ObjectiveSet* earlier);
  Status set_scalars(Program& program, StepShape shape, int64_t micro);
  Status run_program(Program& program, int64_t micro);
  Status set_rates(Program& program);
  Result<StepReport> read_results(const Program& program, ObjectiveSet had);
  Status observe(StepReport* report);
  Status check(const StepReport& report);
  Status check_nonfinite(const StepReport& report);
  Status after_step(const StepReport& report);
  /// True: the best so far.
  Result<bool> evaluate_now();
  Status train();
  Status finish();
  bool out_of_time() const;
  // Where it begins, what it leaves to go on from: trainer_checkpoint.cpp.
  Status open_folder();
  Status load_start();
  Status go_on(const ResumePoint& point);
  TrainerState state() const;
  Status save_checkpoint();
  Status save_weights();
  Status save_end();
  // What the run tells: trainer_report.cpp.
  void report_start();
  void report_environment();
  void write_memory_maps();
  Status log_step(const StepReport& report);
  void tell_skipped(const std::string& what);
  void tell_scale(const StepReport& report);
  void show_progress(const StepReport& report);
  void report_evaluation(const Evaluation& evaluation);
  void report_plans();
  void report_end();
  void report_trace();
  void write_trace();

  Session& session_;
  std::unique_ptr<Programs> programs_;
  std::optional<RunFolder> folder_;
  Previews previews_;
  StepTrace trace_;
  std::optional<ResumePoint> resume_;
  std::unique_ptr<Checkpointer> checkpoints_;
  std::string fingerprint_;                 ///< of the data
  std::vector<TimedRun>* timed_ = nullptr;  ///< within timed_step()
  std::shared_ptr<MetricsWriter> metrics_;  ///< shared with the event listener
  std::optional<ProgressLine> progress_;
  std::optional<LossScale> loss_scale_;
  Status scale_status_;          ///< GR_NONFINITE: the policy gives up
  int64_t nonfinite_ = 0;        ///< steps skipped for gradients that were not finite
  int64_t nonfinite_row_ = 0;    ///< of those, the last ones in a row
  std::vector<double> rates_;    ///< by group, as used in the last step
  int64_t step_ = 0;             ///< optimizer steps tried
  int64_t updates_ = 0;          ///< of those, the ones that changed parameters
  std::vector<int64_t> counts_;  ///< of those, by class of counts (planner.hpp)
  std::vector<double> means_;    ///< by objective, of the last step
  int64_t tokens_ = 0;           ///< targets seen
  int64_t interval_tokens_ = 0;  ///< of those, since the last record
  double tokens_per_second_ = 0;
  int64_t first_step_ = 0, first_tokens_ = 0;  ///< where this part of the run began
  std::optional<double> eval_loss_;            ///< of the last evaluation
  int64_t evaluated_step_ = -1;                ///< when that was
  std::optional<double> best_;
  bool finished_ = false;  ///< max_steps reached, the last evaluation made
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point started_, last_log_;
};

}  // namespace gradrack
