// SPDX-License-Identifier: Apache-2.0
// Set-up of a training run: plugins, plans, memory, run folder. See trainer.hpp.
#include "core/base/log.hpp"
#include "core/train/commands.hpp"
#include "core/train/evaluate.hpp"
#include "core/train/trainer.hpp"

namespace gradrack {

Result<std::unique_ptr<Trainer>> Trainer::make(Session& session) {
  std::unique_ptr<Trainer> trainer(new Trainer(session));
  GR_TRY(trainer->prepare());
  return trainer;
}

Status Trainer::prepare() {
  const RunConfig& config = session_.config;
  const RunSection& run = config.run;
  GR_ASSIGN(setup_, make_setup(session_));
  GR_ASSIGN(feed_, make_feed(session_, setup_));
  GR_TRY(programs_.plan_training(session_, setup_, *feed_, run.batch_size, run.accumulate_steps));
  GR_ASSIGN(const std::vector<int64_t> sizes,
            evaluation_rows(*feed_, run.batch_size, run.eval_batches));
  for (const int64_t rows : sizes) {
    GR_TRY(programs_.plan_evaluation(session_, setup_, *feed_, rows));
  }
  GR_TRY(programs_.check_limit(config.memory_limit_bytes));
  // The folder comes before the memory: an unwritable one should cost nothing.
  GR_ASSIGN(folder_, RunFolder::prepare(run.output, config.metrics_file, session_.events));
  GR_TRY(folder_->save_config(to_yaml(config.root)));
  GR_TRY(programs_.allocate(setup_, *feed_, static_cast<uint64_t>(run.seed)));
  rates_.resize(programs_.groups().size());
  GR_ASSIGN(metrics_, MetricsFile::open(folder_->metrics_path()));
  session_.events.add([file = metrics_](const Event& event) { file->record(event); });
  // Lines for machines are not mixed with lines for people.
  const bool quiet = log_is_quiet() || log_format() == LogFormat::kJson;
  progress_.emplace(stderr, progress_options(stderr, quiet, run.log_interval));
  report_start();
  return {};
}

Status run_train(Session& session) {
  install_stop_signals();
  GR_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::make(session));
  return trainer->run();
}

}  // namespace gradrack
