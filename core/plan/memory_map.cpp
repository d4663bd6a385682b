// SPDX-License-Identifier: Apache-2.0
// What lies where in a plan's arenas: see memory_map.hpp.
#include "core/plan/memory_map.hpp"

#include <algorithm>
#include <limits>

#include "core/plan/plan.hpp"

namespace gradrack {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Use {
  int64_t first = kNever, last = -1;
  uint32_t task = 0;  // the first one
};

// By storage: the places of its first and last task in the order.
std::vector<Use> uses_of(const Plan& plan) {
  std::vector<Use> uses(plan.storages.size());
  for (size_t place = 0; place < plan.schedule.order.size(); ++place) {
    const uint32_t t = plan.schedule.order[place];
    const PlanTask& task = plan.tasks[t];
    const auto touch = [&](int32_t storage) {
      if (storage < 0) return;
      Use& use = uses[static_cast<size_t>(storage)];
      if (use.last < 0) use = {static_cast<int64_t>(place), 0, t};
      use.last = static_cast<int64_t>(place);
    };
    const auto touch_tensor = [&](int32_t tensor) {
      if (tensor >= 0) touch(plan.tensors[static_cast<size_t>(tensor)].storage);
    };
    for (const int32_t tensor : task.inputs) touch_tensor(tensor);
    for (const int32_t tensor : task.outputs) touch_tensor(tensor);
    touch(task.workspace);
  }
  return uses;
}

}  // namespace

MemoryMap memory_map(const std::string& name, const Plan& plan, size_t most) {
  MemoryMap map;
  map.name = name;
  map.tasks = static_cast<int64_t>(plan.tasks.size());
  for (const Device* device : plan.devices) map.devices.push_back(device->name());
  map.arena_bytes = plan.arena_bytes;
  map.arena_bytes.resize(map.devices.size());
  const MemoryReport& m = plan.memory;
  map.classes = {{"parameters", m.parameters},     {"buffers", m.buffers},     {"states", m.states},
                 {"accumulators", m.accumulators}, {"constants", m.constants}, {"inputs", m.inputs},
                 {"outputs", m.outputs},           {"arena", m.arena}};
  map.peak_task = m.peak_task;
  map.live_peak = m.live_peak;
  const std::vector<Use> uses = uses_of(plan);
  for (size_t k = 0; k < plan.storages.size(); ++k) {
    const PlanStorage& storage = plan.storages[k];
    if (storage.residence != Residence::kArena || uses[k].last < 0) continue;
    const Task& task = plan.table.tasks[uses[k].task];
    map.blocks.push_back({storage.device, storage.offset, storage.bytes, uses[k].first,
                          storage.kept ? map.tasks - 1 : uses[k].last, task.kind, task.name});
  }
  std::stable_sort(map.blocks.begin(), map.blocks.end(),
                   [](const MemoryBlock& a, const MemoryBlock& b) { return a.bytes > b.bytes; });
  if (map.blocks.size() > most) map.blocks.resize(most);
  return map;
}

}  // namespace gradrack
