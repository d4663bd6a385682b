// SPDX-License-Identifier: Apache-2.0
// Executor: replays a plan, step after step.
//
// The end of planning and the inside of the training loop: the host writes inputs and scalars,
// calls run(), reads results. Everything is resolved when it is made: run() walks flat arrays,
// allocates nothing, looks nothing up by name, and synchronises each used stream once. Ports are in
// host memory; what devices with memory of their own need of them is copied by tasks of the plan.
// Where one device waits for another, the host waits in between. Invariant: a
// failed run names the task that failed; its results are not to be read. One thread at a time.
// [exec]
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/state/store.hpp"

namespace gradrack {

/// A tensor of the executor that the host reads or writes; got once by name.
struct TensorHandle {
  int32_t tensor = -1;
};

class Executor {
 public:
  /// `store` (not owned; may be null when the plan has no persistent source) is allocated and holds
  /// every one the plan names. Errors: GR_NOT_FOUND or GR_INVALID_ARGUMENT about the store;
  /// GR_OUT_OF_MEMORY. [plan]
  static Result<std::unique_ptr<Executor>> make(std::shared_ptr<const Plan> plan,
                                                const Store* store);
  ~Executor();

  const Plan& plan() const { return *plan_; }

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

  /// Bytes allocated by this executor, on all devices.
  int64_t allocated_bytes() const;

 private:
  /// One task, with everything resolved to addresses.
  struct Step {
    const Device* device = nullptr;
    gr_stream_t* stream = nullptr;
    gr_kernel_t* kernel = nullptr;  // null: a copy of the first input to the first output
    DLTensor* const* inputs = nullptr;
    DLTensor* const* outputs = nullptr;
    const DLTensor* workspace = nullptr;
    gr_event_t* record = nullptr;  // null: nobody waits for it
    uint32_t task = 0;
    uint32_t first_wait = 0;
    uint32_t wait_count = 0;
  };
  struct WaitStep {
    const Device* device;
    gr_stream_t* stream;  // null: the host waits (events do not cross devices)
    gr_event_t* event;
  };

  explicit Executor(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  Status allocate();
  Status bind_tensors(const Store* store);
  Result<DevicePlace> place_of(const PlanStorage& storage, const Store* store) const;
  Status make_lanes();
  Result<const DLTensor*> make_workspace(const PlanStorage& storage);
  Status make_steps();
  Status launch(const Step& step, gr_error_t* err);
  Status synchronize();
  Status diagnose(const Status& failure);
  bool writes_store(uint32_t task) const;

  std::shared_ptr<const Plan> plan_;
  std::vector<Memory> arenas_;  // by device
  Memory inputs_;
  Memory outputs_;
  std::vector<DLTensor> tensors_;      // as plan_->tensors
  std::vector<int64_t> dims_;          // shapes and strides of all tensors
  std::vector<gr_stream_t*> streams_;  // by lane; the devices'
  std::vector<StreamEvent> events_;
  std::vector<Step> steps_;
  std::vector<WaitStep> waits_;
  std::vector<DLTensor*> arguments_;  // inputs, then outputs, of each step
  std::vector<DLTensor> workspaces_;
};

}  // namespace gradrack
