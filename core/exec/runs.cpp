// SPDX-License-Identifier: Apache-2.0
// Executor: walking the flat arrays. See executor.hpp.
//
// Runs that were launched and not waited for are a chain in their StreamSet, the latest first. Each
// was told to begin behind the end of the one before it, so the latest is over when all are, and an
// error reaches it along the events. Invariant: at most the latest of them has anything to undo.
#include "core/exec/executor.hpp"
#include "core/exec/turn.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Status StreamSet::wait() { return latest_ == nullptr ? Status() : latest_->wait(); }

Status Executor::run() {
  const Turn turn(exclusive_, &held_);
  GR_TRY(perform_all(actions_));
  return wait();
}

Status Executor::launch() {
  if (!overlaps_) return run();
  GR_TRY(perform_all(actions_));
  const gr_backend_t* const backend = plan_->devices[size_t(device())]->backend();
  for (size_t k = 0; k < streams_.size(); ++k) {
    gr_error_t err = {};
    const int32_t code = backend->event_record(backend->self, ended_[k].get(), streams_[k], &err);
    if (code != GR_OK) return give_up(status_from(code, err), nullptr);
  }
  return {};
}

Status Executor::wait_for_ports() {
  if (!launched_) return {};
  const gr_backend_t* const backend = plan_->devices[size_t(device())]->backend();
  ++stream_set_->waits_.ports;
  for (const StreamEvent& ended : ended_) {
    gr_error_t err = {};
    const int32_t code = backend->event_synchronize(backend->self, ended.get(), &err);
    if (code != GR_OK) return stream_set_->latest_->give_up(status_from(code, err), nullptr);
  }
  over();
  return {};
}

Status Executor::run_timed(StepTimeline* out) {
  GR_TRY(stream_set_->wait());
  if (timed_ == nullptr) {
    const ThreadRole role(current_roles() | GR_THREAD_PLAN);
    GR_ASSIGN(timed_, TimedSteps::make(*plan_, steps_));
  }
  const ThreadRole role(current_roles() | GR_THREAD_EXEC);
  const Turn turn(exclusive_, &held_);
  GR_TRY(timed_->compare_clocks());
  out->start_ns = host_clock_ns();
  GR_TRY(perform_all(timed_->actions()));
  GR_TRY(wait());
  out->end_ns = host_clock_ns();
  return timed_->read(&out->tasks);
}

Status Executor::take_back() {
  const Turn turn(exclusive_, &held_);
  return undo_.restore();
}

/// Queues a whole run behind those that were launched.
Status Executor::perform_all(std::span<const Action> actions) {
  GR_TRY(wait_for_ports());
  GR_TRY(follow());
  before_ = stream_set_->latest_;
  stream_set_->latest_ = this;
  launched_ = true;
  stream_set_->waits_.devices += host_waits_;
  undo_.number_run();
  gr_error_t err = {};
  for (const Action& action : actions) {
    const int32_t code = perform(action, &err);
    if (code != GR_OK) return give_up(status_from(code, err), &action);
  }
  return {};
}

/// Has each lane wait for the end of the run that was launched last; where lanes cannot, or that
/// run may have to be undone (its copies are in the arena that this one uses), the host waits.
Status Executor::follow() {
  Executor* const last = stream_set_->latest_;
  if (last == nullptr) return {};
  if (!overlaps_ || !last->undo_.empty()) return last->wait();
  const Device* const here = plan_->devices[size_t(device())];
  const Device* const there = last->plan_->devices[size_t(last->device())];
  if (here != there) return last->wait();
  for (gr_stream_t* const stream : streams_) {
    for (size_t k = 0; k < last->streams_.size(); ++k) {
      if (last->streams_[k] == stream) continue;
      gr_error_t err = {};
      const int32_t code =
          here->backend()->stream_wait(here->backend()->self, stream, last->ended_[k].get(), &err);
      if (code != GR_OK) return last->give_up(status_from(code, err), nullptr);
    }
  }
  return {};
}

/// Of the latest run.
Status Executor::wait() {
  ++stream_set_->waits_.runs;
  const Status status = synchronize();
  if (!status.ok()) return give_up(status, nullptr);
  over();
  return status;
}

/// This run is over, and with it all before; those behind it are not.
void Executor::over() {
  for (Executor* e = stream_set_->latest_; e != nullptr && e != this; e = e->before_) {
    if (e->before_ == this) e->before_ = nullptr;
  }
  if (stream_set_->latest_ == this) stream_set_->latest_ = nullptr;
  for (Executor* e = this; e != nullptr;) {
    Executor* const next = e->before_;
    e->launched_ = false;
    e->before_ = nullptr;
    e = next;
  }
}

/// One of the runs failed, this being the latest: empties the streams, puts back what was written.
/// `failed`: the action of this run that a backend refused at once.
Status Executor::give_up(const Status& failure, const Action* failed) {
  for (Executor* e = this; e != nullptr; e = e->before_) (void)e->synchronize();  // `failure` is it
  const Status undone = undo_.restore();
  Status status = before_ != nullptr ? before_->find_failure() : Status();
  const bool known = failed != nullptr && failed->kind == Action::kLaunch;
  if (status.ok() && known) {
    status = failure.with_context(plan_->table.tasks[failed->step->task].name);
  }
  if (status.ok()) status = find_failure();
  if (status.ok()) {
    status =
        failure.with_context("a task that writes parameters or state, or one that fails at times");
  }
  over();
  if (undone.ok()) return status;
  return Status(status.code(), status.message() +
                                   "; and parameters and state could not be put back as they were "
                                   "before this step: " +
                                   undone.message());
}

Status Executor::synchronize() {
  Status first;
  for (size_t k = 0; k < streams_.size(); ++k) {
    const gr_backend_t* const backend =
        plan_->devices[size_t(plan_->schedule.lanes[k].device)]->backend();
    gr_error_t err = {};
    const int32_t code = backend->stream_synchronize(backend->self, streams_[k], &err);
    if (code != GR_OK && first.ok()) first = status_from(code, err);
  }
  return first;
}

bool Executor::writes_store(uint32_t task) const {
  for (const int32_t id : plan_->tasks[task].outputs) {
    const int32_t storage = plan_->tensors[size_t(id)].storage;
    if (plan_->storages[size_t(storage)].residence == Residence::kStore) return true;
  }
  return false;
}

/// An asynchronous error says what failed but not where. Kernels are deterministic, so the runs are
/// made again task by task until one fails; tasks that write the store are left out, so nothing
/// changes. The streams are empty. OK: none failed.
Status Executor::find_failure() {
  if (before_ != nullptr) GR_TRY(before_->find_failure());
  for (const Step& step : steps_) {
    if (writes_store(step.task)) continue;
    gr_error_t err = {};
    const int32_t code = gradrack::launch(step, &err);
    Status status = code == GR_OK ? synchronize() : status_from(code, err);
    if (!status.ok()) return status.with_context(plan_->table.tasks[step.task].name);
  }
  return {};
}

}  // namespace gradrack
