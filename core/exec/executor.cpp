// SPDX-License-Identifier: Apache-2.0
// Executor: making the flat arrays, and walking them. See executor.hpp; ports are in ports.cpp.
#include "core/exec/executor.hpp"

#include <fmt/format.h>

#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Executor::~Executor() {
  const ThreadRole role(current_roles() | GR_THREAD_EXEC);
  for (size_t k = 0; k < streams_.size(); ++k) {
    const Lane& lane = plan_->schedule.lanes[k];
    const gr_backend_t* const backend = plan_->devices[size_t(lane.device)]->backend();
    gr_error_t err = {};
    (void)backend->stream_synchronize(backend->self, streams_[k], &err);  // nobody to tell
  }
}

Result<std::unique_ptr<Executor>> Executor::make(std::shared_ptr<const Plan> plan,
                                                 const Store* store) {
  std::unique_ptr<Executor> executor(new Executor(std::move(plan)));
  GR_TRY(executor->allocate());
  GR_TRY(executor->bind_tensors(store));
  GR_TRY(executor->make_lanes());
  GR_TRY(executor->make_steps());
  return executor;
}

Status Executor::allocate() {
  for (size_t d = 0; d < plan_->devices.size(); ++d) {
    // An arena without bytes has a place too: kernels get one for tensors without elements.
    GR_ASSIGN(Memory arena, plan_->devices[d]->allocate(plan_->arena_bytes[d]));
    arenas_.push_back(std::move(arena));
  }
  Device& host = *plan_->devices[size_t(plan_->host)];
  GR_ASSIGN(inputs_, host.allocate(plan_->input_bytes));
  GR_ASSIGN(outputs_, host.allocate(plan_->output_bytes));
  return {};
}

int64_t Executor::allocated_bytes() const {
  int64_t bytes = inputs_.bytes() + outputs_.bytes();
  for (const Memory& arena : arenas_) bytes += arena.bytes();
  return bytes;
}

Result<DevicePlace> Executor::place_of(const PlanStorage& storage, const Store* store) const {
  switch (storage.residence) {
    case Residence::kConstant:
      return plan_->constants[size_t(storage.device)].at(storage.offset);
    case Residence::kInput:
      return inputs_.at(storage.offset);
    case Residence::kOutput:
      return outputs_.at(storage.offset);
    case Residence::kArena:
      return arenas_[size_t(storage.device)].at(storage.offset);
    case Residence::kStore:
      break;
  }
  const StoredTensor* stored = store != nullptr ? store->find(storage.name) : nullptr;
  if (stored == nullptr || !store->allocated()) {
    return not_found("the plan uses '" + storage.name + "', which the store does not hold");
  }
  if (stored->bytes != storage.bytes || stored->source != storage.source) {
    return invalid_argument(fmt::format("'{}' has {} bytes in the store, the plan wants {}",
                                        storage.name, stored->bytes, storage.bytes));
  }
  return stored->place;
}

Status Executor::bind_tensors(const Store* store) {
  size_t dims = 0;
  for (const PlanTensor& tensor : plan_->tensors) dims += 2 * tensor.dims.size();
  dims_.resize(dims + 1);  // one more, so that a rank of 0 has an address too
  int64_t* next = dims_.data();
  for (const PlanTensor& tensor : plan_->tensors) {
    const PlanStorage& storage = plan_->storages[size_t(tensor.storage)];
    GR_ASSIGN(const DevicePlace place, place_of(storage, store));
    DLTensor out = {};
    out.data = place.data;
    out.byte_offset = place.byte_offset;
    out.device = plan_->devices[size_t(storage.device)]->dl_device();
    out.ndim = static_cast<int32_t>(tensor.dims.size());
    out.dtype = gr_dl_dtype(tensor.dtype);
    out.shape = next;
    out.strides = next + tensor.dims.size();
    int64_t stride = 1;
    for (size_t k = tensor.dims.size(); k-- > 0;) {
      out.shape[k] = tensor.dims[k];
      out.strides[k] = stride;
      stride *= tensor.dims[k];
    }
    next += 2 * tensor.dims.size();
    tensors_.push_back(out);
  }
  return {};
}

Status Executor::make_lanes() {
  for (const Lane& lane : plan_->schedule.lanes) {
    GR_ASSIGN(gr_stream_t* const stream, plan_->devices[size_t(lane.device)]->stream(lane.stream));
    streams_.push_back(stream);
  }
  return {};
}

Result<const DLTensor*> Executor::make_workspace(const PlanStorage& storage) {
  GR_ASSIGN(const DevicePlace place, place_of(storage, nullptr));
  const DLDevice device = plan_->devices[size_t(storage.device)]->dl_device();
  workspaces_.push_back(byte_row(place, device, &storage.bytes));
  return &workspaces_.back();
}

Status Executor::make_steps() {
  const Schedule& schedule = plan_->schedule;
  std::vector<gr_event_t*> event(plan_->tasks.size(), nullptr);
  std::vector<std::vector<uint32_t>> waits(plan_->tasks.size());
  for (const Wait& wait : schedule.waits) {
    waits[wait.task].push_back(wait.on);
    if (event[wait.on] != nullptr) continue;
    const int32_t device = plan_->tasks[wait.on].device;
    GR_ASSIGN(StreamEvent made, plan_->devices[size_t(device)]->make_event());
    event[wait.on] = made.get();
    events_.push_back(std::move(made));
  }
  size_t arguments = 0;
  for (const PlanTask& task : plan_->tasks) arguments += task.inputs.size() + task.outputs.size();
  arguments_.reserve(arguments);
  workspaces_.reserve(plan_->tasks.size());  // steps keep their addresses
  for (const uint32_t t : schedule.order) {
    const PlanTask& task = plan_->tasks[t];
    Step step;
    step.device = plan_->devices[size_t(task.device)];
    step.stream = streams_[schedule.lane[t]];
    if (task.kernel >= 0) step.kernel = plan_->kernels[size_t(task.kernel)];
    step.inputs = arguments_.data() + arguments_.size();
    for (const int32_t id : task.inputs) arguments_.push_back(&tensors_[size_t(id)]);
    step.outputs = arguments_.data() + arguments_.size();
    for (const int32_t id : task.outputs) arguments_.push_back(&tensors_[size_t(id)]);
    if (task.workspace >= 0) {
      GR_ASSIGN(step.workspace, make_workspace(plan_->storages[size_t(task.workspace)]));
    }
    step.record = event[t];
    step.task = t;
    step.first_wait = static_cast<uint32_t>(waits_.size());
    step.wait_count = static_cast<uint32_t>(waits[t].size());
    for (const uint32_t on : waits[t]) {
      const bool same = plan_->tasks[on].device == task.device;
      waits_.push_back({plan_->devices[size_t(plan_->tasks[on].device)],
                        same ? step.stream : nullptr, event[on]});
    }
    steps_.push_back(step);
  }
  return {};
}

Status Executor::launch(const Step& step, gr_error_t* err) {
  const gr_backend_t* const backend = step.device->backend();
  int32_t code = GR_OK;
  if (step.kernel != nullptr) {
    code = backend->launch(backend->self, step.kernel, step.inputs, step.outputs, step.workspace,
                           step.stream, err);
  } else {
    code = backend->copy(backend->self, step.outputs[0], step.inputs[0], step.stream, err);
  }
  return code == GR_OK ? Status() : status_from(code, *err);
}

Status Executor::run() {
  gr_error_t err = {};
  for (const Step& step : steps_) {
    const gr_backend_t* const backend = step.device->backend();
    int32_t code = GR_OK;
    for (uint32_t k = 0; k < step.wait_count && code == GR_OK; ++k) {
      const WaitStep& wait = waits_[step.first_wait + k];
      const gr_backend_t* const other = wait.device->backend();
      code = wait.stream != nullptr ? other->stream_wait(other->self, wait.stream, wait.event, &err)
                                    : other->event_synchronize(other->self, wait.event, &err);
    }
    if (code != GR_OK) return diagnose(status_from(code, err));
    Status status = launch(step, &err);
    if (!status.ok()) {
      (void)synchronize();  // drains what runs; the launch's own error is the one to tell
      return status.with_context(plan_->table.tasks[step.task].name);
    }
    if (step.record == nullptr) continue;
    code = backend->event_record(backend->self, step.record, step.stream, &err);
    if (code != GR_OK) return diagnose(status_from(code, err));
  }
  Status status = synchronize();
  return status.ok() ? status : diagnose(status);
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

/// An asynchronous error says what failed but not where. Kernels are deterministic, so the step is
/// run again task by task until one fails; tasks that write the store are left out, so nothing
/// changes.
Status Executor::diagnose(const Status& failure) {
  (void)synchronize();
  for (const Step& step : steps_) {
    if (writes_store(step.task)) continue;
    gr_error_t err = {};
    Status status = launch(step, &err);
    if (status.ok()) status = synchronize();
    if (!status.ok()) return status.with_context(plan_->table.tasks[step.task].name);
  }
  return failure.with_context("a task that writes parameters or state, or one that fails at times");
}

}  // namespace gradrack
