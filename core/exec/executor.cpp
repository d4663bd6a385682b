// SPDX-License-Identifier: Apache-2.0
// Executor: making the flat arrays. See executor.hpp; they are walked in runs.cpp, ports are in
// ports.cpp.
#include "core/exec/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/exec/turn.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Executor::~Executor() {
  const ThreadRole role(current_roles() | GR_THREAD_EXEC);
  if (launched_) (void)stream_set_->wait();  // nobody to tell
  const Turn turn(exclusive_, &held_);
  for (size_t k = 0; k < streams_.size(); ++k) {
    const Lane& lane = plan_->schedule.lanes[k];
    const gr_backend_t* const backend = plan_->devices[size_t(lane.device)]->backend();
    gr_error_t err = {};
    (void)backend->stream_synchronize(backend->self, streams_[k], &err);  // nobody to tell
  }
}

Result<std::unique_ptr<Executor>> Executor::make(std::shared_ptr<const Plan> plan,
                                                 const Store* store, ExecutorOptions options) {
  std::unique_ptr<Executor> executor(new Executor(std::move(plan)));
  GR_TRY(executor->allocate(options));
  GR_TRY(executor->bind_tensors(store));
  GR_TRY(executor->make_lanes(std::move(options.streams)));
  GR_TRY(executor->make_steps());
  GR_TRY(executor->make_actions(options.record));
  for (const Action& action : executor->actions_) {
    if (action.kind == Action::kHostWait) ++executor->host_waits_;
  }
  executor->undo_ = Undo(executor->plan(), executor->tensors_, executor->steps_);
  return executor;
}

Status Executor::allocate(const ExecutorOptions& options) {
  arenas_ = options.arenas;
  if (arenas_ == nullptr) {
    const Plan* const alone = plan_.get();
    GR_ASSIGN(arenas_, ArenaBlocks::make({&alone, 1}));
    own_arenas_ = true;
  }
  for (size_t d = 0; d < plan_->devices.size(); ++d) {
    GR_ASSIGN(const Memory* const block, arenas_->block(*plan_, d));
    arena_.push_back(block);
  }
  Device& host = *plan_->devices[size_t(plan_->host)];
  GR_ASSIGN(inputs_, host.allocate(plan_->input_bytes));
  GR_ASSIGN(outputs_, host.allocate(plan_->output_bytes));
  return {};
}

int64_t Executor::allocated_bytes() const {
  return inputs_.bytes() + outputs_.bytes() + (own_arenas_ ? arenas_->allocated_bytes() : 0);
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
      return arena_[size_t(storage.device)]->at(storage.offset);
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

Status Executor::make_lanes(std::shared_ptr<StreamSet> streams) {
  stream_set_ = streams != nullptr ? std::move(streams) : std::make_shared<StreamSet>();
  for (const Lane& lane : plan_->schedule.lanes) {
    Device* const device = plan_->devices[size_t(lane.device)];
    GR_ASSIGN(gr_stream_t* const stream, stream_set_->stream(device, lane.stream));
    streams_.push_back(stream);
    if (!device->concurrent()) exclusive_.push_back(device);
  }
  std::sort(exclusive_.begin(), exclusive_.end(), std::less<const Device*>());
  exclusive_.erase(std::unique(exclusive_.begin(), exclusive_.end()), exclusive_.end());
  held_.reserve(exclusive_.size());
  return make_ends();
}

Status Executor::make_ends() {
  const std::vector<Lane>& lanes = plan_->schedule.lanes;
  const auto is_here = [&](const Lane& lane) { return lane.device == device(); };
  overlaps_ =
      exclusive_.empty() && !lanes.empty() && std::all_of(lanes.begin(), lanes.end(), is_here);
  for (size_t k = 0; overlaps_ && k < lanes.size(); ++k) {
    GR_ASSIGN(StreamEvent made, plan_->devices[size_t(device())]->make_event());
    ended_.push_back(std::move(made));
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
  std::vector<uint32_t> index(plan_->tasks.size());  // of each task: its step
  for (uint32_t k = 0; k < schedule.order.size(); ++k) index[schedule.order[k]] = k;
  std::vector<gr_event_t*> event(plan_->tasks.size(), nullptr);
  std::vector<std::vector<StepWait>> waits(plan_->tasks.size());
  for (const Wait& wait : schedule.waits) {
    if (event[wait.on] == nullptr) {
      const int32_t device = plan_->tasks[wait.on].device;
      GR_ASSIGN(StreamEvent made, plan_->devices[size_t(device)]->make_event());
      event[wait.on] = made.get();
      events_.push_back(std::move(made));
    }
    waits[wait.task].push_back({index[wait.on], event[wait.on]});
  }
  size_t arguments = 0;
  for (const PlanTask& task : plan_->tasks) arguments += task.inputs.size() + task.outputs.size();
  // What steps point to keeps its address.
  arguments_.reserve(arguments);
  workspaces_.reserve(plan_->tasks.size());
  waits_.reserve(schedule.waits.size());
  for (const uint32_t t : schedule.order) {
    const PlanTask& task = plan_->tasks[t];
    Step step;
    step.device = plan_->devices[size_t(task.device)];
    step.lane = schedule.lane[t];
    step.stream = streams_[step.lane];
    step.task = t;
    if (task.kernel >= 0) step.kernel = plan_->kernels[size_t(task.kernel)];
    step.inputs = arguments_.data() + arguments_.size();
    for (const int32_t id : task.inputs) arguments_.push_back(&tensors_[size_t(id)]);
    step.outputs = arguments_.data() + arguments_.size();
    for (const int32_t id : task.outputs) arguments_.push_back(&tensors_[size_t(id)]);
    if (task.workspace >= 0) {
      GR_ASSIGN(step.workspace, make_workspace(plan_->storages[size_t(task.workspace)]));
    }
    step.record = event[t];
    step.waits = {waits_.data() + waits_.size(), waits[t].size()};
    waits_.insert(waits_.end(), waits[t].begin(), waits[t].end());
    steps_.push_back(step);
  }
  return {};
}

Status Executor::make_actions(bool record) {
  if (!record) {
    actions_ = plain_actions(steps_);
    return {};
  }
  const ThreadRole role(current_roles() | GR_THREAD_EXEC);
  const Turn turn(exclusive_, &held_);
  GR_TRY(record_steps(*plan_, steps_, recorded_.get()));
  actions_ = std::move(recorded_->actions);
  return {};
}

}  // namespace gradrack
