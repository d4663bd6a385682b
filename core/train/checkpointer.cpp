// SPDX-License-Identifier: Apache-2.0
// Checkpointer: see checkpointer.hpp.
#include "core/train/checkpointer.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <system_error>

#include "core/train/weights.hpp"

namespace gradrack {
namespace {

using Clock = std::chrono::steady_clock;

std::string milliseconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.2f}", std::chrono::duration<double, std::milli>(time).count());
}

// The step that runs meanwhile goes first. Not being allowed to is no fault.
void lower_priority() {
  constexpr int kNice = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
}

}  // namespace

Checkpointer::Checkpointer(std::string folder, const CheckpointSection& rules, std::string run_id,
                           std::string model, EventSink& events)
    : folder_(std::move(folder)),
      rules_(rules),
      run_id_(std::move(run_id)),
      model_(std::move(model)),
      events_(events) {}

Checkpointer::~Checkpointer() {
  (void)settle(wait());  // it reads the snapshot; a failure is said
}

void Checkpointer::set_saved(int64_t step, bool finished) {
  saved_ = started_ = step;
  finished_ = finished;
}

Status Checkpointer::wait() {
  if (!under_way_.valid()) return {};
  const Status done = under_way_.get();
  if (written_) {  // a rotation that failed after it takes nothing back
    saved_ = started_;
    report_saved();
  }
  started_ = saved_;
  return done;
}

// For whoever reads the record later, as what a checkpoint costs.
void Checkpointer::report_saved() const {
  const std::string copy = milliseconds(copy_time_);
  const std::string write = milliseconds(write_time_);
  events_.emit(
      {"checkpoint_saved",
       Level::kDebug,
       fmt::format("checkpoint of step {}: copied in {} ms, written beside the run in {} ms",
                   saved_, copy, write),
       {{"step", std::to_string(saved_)}, {"copy_ms", copy}, {"write_ms", write}}});
}

// What becomes of a failure while the run goes on.
Status Checkpointer::settle(const Status& done) {
  if (done.ok()) return {};
  const std::string kept =
      saved_ < 0 ? "there is none before it" : fmt::format("the one of step {} is intact", saved_);
  const std::string next = rules_.stop_on_error ? "" : "; training goes on";
  events_.emit({"checkpoint_error",
                Level::kWarn,
                fmt::format("{}; {}{}", done.message(), kept, next),
                {{"reason", done.message()}, {"saved_step", std::to_string(saved_)}}});
  return rules_.stop_on_error ? done : Status();
}

Status Checkpointer::save(const Store& store, const std::map<std::string, std::string>& averages,
                          const TrainerState& state, std::optional<double> eval_loss) {
  GR_TRY(settle(wait()));
  if (started_ == state.step && finished_ == state.finished) return {};
  const Clock::time_point begin = Clock::now();
  const Status copied = snapshot_.take(store);
  copy_time_ = Clock::now() - begin;
  if (!copied.ok()) return settle(copied);
  CheckpointContent content;
  content.manifest = {run_id_, state.step, eval_loss, state.finished};
  content.weights = snapshot_.weights(averages);
  content.state = snapshot_.state(averages);
  content.metadata = weights_metadata(state.step, model_);
  content.state_json = to_json(state);
  started_ = state.step;
  finished_ = state.finished;
  written_ = false;
  const auto job = [this, content = std::move(content)] { return write(content); };
  try {
    under_way_ = std::async(std::launch::async, [job] {
      lower_priority();
      return job();
    });
  } catch (const std::system_error&) {
    under_way_ = std::async(std::launch::deferred, job);  // no thread left: wait() writes it
  }
  return {};
}

Status Checkpointer::write(const CheckpointContent& content) {
  const Clock::time_point begin = Clock::now();
  try {
    GR_TRY(write_checkpoint(folder_, content));
    write_time_ = Clock::now() - begin;
    written_ = true;
    return rotate_checkpoints(folder_, {run_id_, rules_.keep_last, rules_.keep_best},
                              content.manifest.step);
  } catch (const std::bad_alloc&) {
    return {GR_OUT_OF_MEMORY, "no memory left to write a checkpoint"};
  } catch (const std::exception& error) {
    return internal_error(std::string("while a checkpoint was written: ") + error.what());
  }
}

}  // namespace gradrack
