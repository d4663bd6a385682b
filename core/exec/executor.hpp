// SPDX-License-Identifier: Apache-2.0
// Executor: replays a plan, step after step.
//
// The end of planning and the inside of the training loop: the host writes inputs and scalars,
// calls run(), reads results. Everything is resolved when it is made: run() walks flat arrays,
// allocates nothing, looks nothing up by name, and synchronises each used stream once. Runs of
// several executors may be launched one behind the other and waited for together. Where backends
// record, most of a step is a few replays; a recording belongs to its executor alone.
// Ports are in host memory; what devices with memory of their own need of them is copied by tasks
// of the plan. Where one device waits for another, the host waits in between. Invariant: a failed
// run names the task that failed; its results are not to be read, and what it began to write of
// parameters, buffers and state is put back where the plan has copies for that (PlanRequest::undo).
// One thread at a time; executors that share neither streams nor an arena may run at once. [exec]
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/exec/arena_blocks.hpp"
#include "core/exec/recorder.hpp"
#include "core/exec/stream_set.hpp"
#include "core/exec/timeline.hpp"
#include "core/exec/undo.hpp"
#include "core/state/store.hpp"

namespace gradrack {

/// A tensor of the executor that the host reads or writes; got once by name.
struct TensorHandle {
  int32_t tensor = -1;
};

/// What executors of one trainer share.
struct ExecutorOptions {
  std::shared_ptr<StreamSet> streams = nullptr;         ///< null: streams of its own
  std::shared_ptr<const ArenaBlocks> arenas = nullptr;  ///< null: an arena of its own
  bool record = true;  ///< where backends can: record the steps now, replay them in each run
};

class Executor {
 public:
  /// `store` (not owned; may be null when the plan has no persistent source) is allocated and holds
  /// every one the plan names. Errors: GR_NOT_FOUND or GR_INVALID_ARGUMENT about the store, or an
  /// arena that is too small; GR_OUT_OF_MEMORY. [plan]
  static Result<std::unique_ptr<Executor>> make(std::shared_ptr<const Plan> plan,
                                                const Store* store, ExecutorOptions options = {});
  ~Executor();

  const Plan& plan() const { return *plan_; }
  /// For whoever may outlive the executor.
  std::shared_ptr<const Plan> shared_plan() const { return plan_; }
  /// Why tasks are launched one by one that should be replayed; a sentence a backend.
  const std::vector<std::string>& notes() const { return recorded_->notes; }
  /// Tasks that are replayed.
  size_t recorded_tasks() const { return recorded_->recorded; }

  // Names, once. GR_NOT_FOUND lists what there is: a source that no live node reads is not in a
  // plan.
  Result<TensorHandle> input(std::string_view name) const;
  Result<TensorHandle> scalar(std::string_view name) const;
  Result<TensorHandle> output(std::string_view name) const;
  Result<TensorHandle> objective_sum(std::string_view name) const;
  Result<TensorHandle> objective_count(std::string_view name) const;

  // Each step, between runs.
  /// Dense tensor in host memory to write a batch into, or to read a result from until the next
  /// run.
  DLTensor* tensor(TensorHandle handle) { return &tensors_[static_cast<size_t>(handle.tensor)]; }
  /// Writes a scalar, or the elements of a small vector (rng: seed, step, microbatch), as its
  /// dtype.
  Status set_scalar(TensorHandle handle, double number);
  Status set_scalar(TensorHandle handle, std::span<const int64_t> numbers);
  /// First element as a double.
  Result<double> read_scalar(TensorHandle handle) const;
  /// One step: launches all tasks, then waits for all streams. The error of a task carries its
  /// operator, stage and node.
  Status run();
  /// The same without the wait: the run begins behind those launched before it, and its results,
  /// and its errors, are those of StreamSet::wait(). Meanwhile its ports belong to it, and nobody
  /// else uses its streams or the store. Waits at once where the plan uses several devices, or one
  /// that is not concurrent; for the run before where that has something to undo. [exec]
  Status launch();
  /// Before the ports are written: waits for what is left of the last launch. [exec]
  Status wait_for_ports();
  /// Puts back what the last run wrote of parameters, buffers and state: for a run whose results
  /// say that it must not count. Directly behind it; nothing where the plan has no copies
  /// (PlanRequest::undo). Errors: those of the copies. [exec]
  Status take_back();
  /// run() with a clock: the tasks are launched one by one, recorded or not, and when each began
  /// and ended goes to `out`. The same bits, in more time. The first call makes what the clock
  /// needs. GR_UNSUPPORTED: names the backend that has no gr.timing/1; nothing was run. [exec]
  Status run_timed(StepTimeline* out);

  /// Bytes allocated for this executor, on all devices; an arena given to make() is not counted.
  int64_t allocated_bytes() const;

 private:
  explicit Executor(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Status allocate(const ExecutorOptions& options);
  Status bind_tensors(const Store* store);
  Result<DevicePlace> place_of(const PlanStorage& storage, const Store* store) const;
  Status make_lanes(std::shared_ptr<StreamSet> streams);
  Status make_ends();
  Result<const DLTensor*> make_workspace(const PlanStorage& storage);
  Status make_steps();
  Status make_actions(bool record);
  // Of a run: runs.cpp.
  friend class StreamSet;
  Status perform_all(std::span<const Action> actions);
  Status follow();
  Status wait();
  void over();
  Status give_up(const Status& failure, const Action* failed);
  Status synchronize();
  Status find_failure();
  int32_t device() const { return plan_->schedule.lanes.front().device; }  // of the first lane
  bool writes_store(uint32_t task) const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const ArenaBlocks> arenas_;
  bool own_arenas_ = false;
  std::vector<const Memory*> arena_;  // by device
  Memory inputs_;
  Memory outputs_;
  std::vector<DLTensor> tensors_;  // as plan_->tensors
  std::vector<int64_t> dims_;      // shapes and strides of all tensors
  std::shared_ptr<StreamSet> stream_set_;
  std::vector<gr_stream_t*> streams_;     // by lane
  std::vector<const Device*> exclusive_;  // devices that one executor at a time uses; by address
  std::vector<std::unique_lock<std::mutex>> held_;  // theirs, during a run
  std::vector<StreamEvent> events_;
  std::vector<StreamEvent> ended_;    // by lane: of the last launch
  bool overlaps_ = false;             // its runs may be launched behind each other
  int64_t host_waits_ = 0;            // of the host within a run, between devices
  bool launched_ = false;             // and not waited for yet
  Executor* before_ = nullptr;        // the run launched before that one
  std::vector<DLTensor*> arguments_;  // inputs, then outputs, of each step
  std::vector<DLTensor> workspaces_;
  std::vector<StepWait> waits_;
  std::vector<Step> steps_;
  std::unique_ptr<RecordedSteps> recorded_ = std::make_unique<RecordedSteps>();
  std::vector<Action> actions_;        // of a run
  std::unique_ptr<TimedSteps> timed_;  // null until run_timed()
  Undo undo_;
};

}  // namespace gradrack
