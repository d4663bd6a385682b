// SPDX-License-Identifier: Apache-2.0
// Waves of B and F: see wavefront.hpp.
#include "core/simulate/orders/wavefront.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {
namespace {

Status unfit(const SimTable& table, const std::string& why) {
  return invalid_argument(table.name + ": not a pipeline for order capped: " + why)
      .in_area(Area::kConfig);
}

// Time from the end of `sender` to when `task` may start: through a transfer, or none.
int64_t sending_time(const SimTable& table, uint32_t task, uint32_t sender) {
  for (const uint32_t dep : table.tasks.tasks[task].deps) {
    if (!table.is_transfer(dep)) continue;
    const auto& deps = table.tasks.tasks[dep].deps;
    if (std::find(deps.begin(), deps.end(), sender) == deps.end()) continue;
    return table.tasks.tasks[dep].cost_ns + table.links[table.link_of(dep)].latency_ns;
  }
  return 0;
}

Status check_equal(const SimTable& table, const Pipeline& pipeline, uint32_t s, PipelineKind kind) {
  const uint32_t first = pipeline.task(s, 0, kind);
  for (uint32_t j = 0; j < pipeline.microbatches; ++j) {
    const uint32_t index = pipeline.task(s, j, kind);
    const Task& task = table.tasks.tasks[index];
    if (!table.more[index].reads.empty() || (kind != kF && task.bytes_held != 0)) {
      return unfit(table, fmt::format("task '{}': wanted forwards alone to hold bytes, and "
                                      "bytes_freed in place of reads",
                                      task.name));
    }
    if (task.cost_ns == table.tasks.tasks[first].cost_ns &&
        task.bytes_held == table.tasks.tasks[first].bytes_held &&
        table.more[index].bytes_freed == table.more[first].bytes_freed) {
      continue;
    }
    return unfit(table, fmt::format("task '{}' takes another time or memory than '{}', wanted all "
                                    "microbatches equal",
                                    task.name, table.tasks.tasks[first].name));
  }
  return {};
}

}  // namespace

Result<PipelineCosts> read_costs(const SimTable& table, const Pipeline& pipeline) {
  if (pipeline.fused || pipeline.layered()) {
    return unfit(table,
                 "wanted one layer a device with dX and dW apart "
                 "(pipeline.backward=split)");
  }
  PipelineCosts costs;
  costs.microbatches = pipeline.microbatches;
  for (uint32_t s = 0; s < pipeline.stages; ++s) {
    PipelineCosts::Stage stage;
    for (const PipelineKind kind : {kF, kB, kW}) {
      GR_TRY(check_equal(table, pipeline, s, kind));
      const uint32_t task = pipeline.task(s, 0, kind);
      stage.time[kind] = table.tasks.tasks[task].cost_ns;
      stage.freed[kind] = table.more[task].bytes_freed;
    }
    stage.held = table.tasks.tasks[pipeline.task(s, 0, kF)].bytes_held;
    stage.limit = table.devices[s].memory_limit > 0 ? table.devices[s].memory_limit : INT64_MAX;
    if (stage.room() < 1) {
      return Status(GR_FAILED_PRECONDITION,
                    fmt::format("device '{}': memory limit {} is below the {} bytes of one "
                                "microbatch: that is the least",
                                table.devices[s].name, stage.limit, stage.held))
          .in_area(Area::kConfig);
    }
    costs.stages.push_back(stage);
  }
  for (uint32_t s = 0; s + 1 < pipeline.stages; ++s) {
    costs.stages[s].send_forward =
        sending_time(table, pipeline.task(s + 1, 0, kF), pipeline.task(s, 0, kF));
    costs.stages[s + 1].send_gradient =
        sending_time(table, pipeline.task(s, 0, kB), pipeline.task(s + 1, 0, kB));
  }
  return costs;
}

void Wavefront::put(size_t s, PipelineKind kind, int64_t ready) {
  Device& device = devices_[s];
  const PipelineCosts::Stage& stage = costs_.stages[s];
  const bool first = device.count[kF] == 0;
  const int64_t start = std::max(ready, device.now);
  if (first)
    device.first = start;
  else
    device.waited += start - device.now;
  device.now = start + stage.time[kind];
  if (kind == kF) device.bytes += stage.held;
  device.bytes -= stage.freed[kind];
  if (kind == kF) end_f_[s * microbatches_ + device.count[kF]] = device.now;
  if (kind == kB) end_b_[s * microbatches_ + device.count[kB]] = device.now;
  ++device.count[kind];
  if (record_ != nullptr) (*record_)[s].push_back(kind);
}

void Wavefront::fill(size_t s, int64_t ready, int64_t overhang) {
  const int64_t time = costs_.stages[s].time[kW];
  const Device& device = devices_[s];
  while (device.count[kW] < device.count[kB]) {
    const int64_t gap = ready - device.now;
    if (gap <= 0) return;
    const bool fits = gap * 100 >= time * (100 - overhang);
    if (!fits && device.waited + gap <= choice_->patience[s]) return;
    put(s, kW, 0);
  }
}

bool Wavefront::make_room(size_t s) {
  const Device& device = devices_[s];
  while (device.bytes > costs_.stages[s].limit - costs_.stages[s].held) {
    if (device.count[kW] == device.count[kB]) return false;
    put(s, kW, 0);
  }
  return true;
}

int64_t Wavefront::input_ready(size_t s, uint32_t microbatch) const {
  if (s == 0) return 0;
  return end_f_[(s - 1) * microbatches_ + microbatch] + costs_.stages[s - 1].send_forward;
}

int64_t Wavefront::gradient_ready(size_t s, uint32_t microbatch) const {
  if (s + 1 == costs_.stages.size()) return end_f_[s * microbatches_ + microbatch];
  return end_b_[(s + 1) * microbatches_ + microbatch] + costs_.stages[s + 1].send_gradient;
}

int64_t Wavefront::span(const WaveChoice& choice, uint32_t microbatches, int64_t most) {
  const size_t count = costs_.stages.size();
  choice_ = &choice;
  microbatches_ = microbatches;
  devices_.assign(count, Device());
  most_waited_.resize(count);
  for (size_t s = 0; s < count; ++s) {
    const int64_t* const time = costs_.stages[s].time;
    most_waited_[s] = most - (time[kF] + time[kB] + time[kW]) * microbatches;
  }
  end_f_.assign(count * microbatches, 0);
  end_b_.assign(count * microbatches, 0);
  const int64_t longest = place();
  for (const Device& d : devices_) placed_ += int64_t{d.count[kF]} + d.count[kB] + d.count[kW];
  return longest <= most ? longest : INT64_MAX;
}

int64_t Wavefront::place() {
  const WaveChoice& choice = *choice_;
  const size_t count = costs_.stages.size();
  for (size_t s = 0; s < count; ++s) {
    const auto warm_up = std::min<int64_t>(choice.warm_up[s], microbatches_);
    for (uint32_t j = 0; j < warm_up; ++j) put(s, kF, input_ready(s, j));
  }
  for (uint32_t wave = 0; wave < microbatches_; ++wave) {
    for (size_t s = count; s-- > 0;) {
      const int64_t ready = gradient_ready(s, wave);
      fill(s, ready, choice.overhang_b);
      put(s, kB, ready);
      if (too_late(s)) return INT64_MAX;
    }
    for (size_t s = 0; s < count; ++s) {
      if (devices_[s].count[kF] == microbatches_) continue;
      const int64_t ready = input_ready(s, devices_[s].count[kF]);
      if (!make_room(s)) return INT64_MAX;
      if (choice.fill_before_f) fill(s, ready, choice.overhang_f);
      put(s, kF, ready);
      if (too_late(s)) return INT64_MAX;
    }
  }
  int64_t longest = 0;
  for (size_t s = 0; s < count; ++s) {
    while (devices_[s].count[kW] < microbatches_) put(s, kW, 0);
    longest = std::max(longest, devices_[s].now - devices_[s].first);
  }
  return longest;
}

std::vector<PipelineLane> Wavefront::lanes(const WaveChoice& choice) {
  std::vector<PipelineLane> lanes(costs_.stages.size());
  record_ = &lanes;
  span(choice, costs_.microbatches);
  record_ = nullptr;
  return lanes;
}

}  // namespace gradrack
