// SPDX-License-Identifier: Apache-2.0
// Layout: see layout.hpp.
#include "core/plan/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/text.hpp"
#include "core/plan/arena.hpp"
#include "core/state/store.hpp"

namespace gradrack {

namespace {

class Layout {
 public:
  explicit Layout(Draft* draft)
      : draft_(*draft), plan_(*draft->plan), used_(plan_.storages.size(), false) {
    for (const Device* device : plan_.devices) {
      alignment_ = std::max(alignment_, device->alignment());
    }
    for (const PlanTensor& tensor : plan_.tensors) used_[size_t(tensor.storage)] = true;
    for (const PlanTask& task : plan_.tasks) {
      if (task.workspace >= 0) used_[size_t(task.workspace)] = true;
    }
  }

  Status fixed() {
    plan_.memory.inputs = plan_.input_bytes = stack(Residence::kInput, plan_.host);
    plan_.memory.outputs = plan_.output_bytes = stack(Residence::kOutput, plan_.host);
    for (size_t d = 0; d < plan_.devices.size(); ++d) GR_TRY(fill_constants(d));
    count_persistent();
    return {};
  }

  void arenas() {
    place_arenas();
    find_live_peak();
  }

 private:
  /// One after the other: for what lives as long as its block.
  int64_t stack(Residence residence, int32_t device) {
    int64_t end = 0;
    for (size_t k = 0; k < used_.size(); ++k) {
      PlanStorage& storage = plan_.storages[k];
      if (!used_[k] || storage.residence != residence || storage.device != device) continue;
      storage.offset = end;
      end += align_up(storage.bytes, alignment_);
    }
    return end;
  }

  /// All constants of a device go there at once.
  Status fill_constants(size_t d) {
    const int64_t bytes = stack(Residence::kConstant, static_cast<int32_t>(d));
    plan_.memory.constants += bytes;
    GR_ASSIGN(Memory memory, plan_.devices[d]->allocate(bytes));
    std::vector<std::byte> content(static_cast<size_t>(bytes));
    const auto add = [&](ValueId id, int32_t storage) {
      const BoundValue& value = draft_.bound->at(id);
      if (!value.constant || storage < 0 || !used_[size_t(storage)] || value.bytes == 0) return;
      const PlanStorage& at = plan_.storages[size_t(storage)];
      if (at.device != static_cast<int32_t>(d)) return;
      std::memcpy(content.data() + at.offset, value.content.data(), value.content.size());
    };
    for (size_t id = 0; id < draft_.storage.size(); ++id) {
      add(static_cast<ValueId>(id), draft_.storage[id]);
    }
    for (const auto& [key, storage] : draft_.copies) add(key.first, storage);
    GR_TRY(plan_.devices[d]->write(memory.at(0), content.data(), bytes));
    plan_.constants.push_back(std::move(memory));
    return {};
  }

  void place_arenas() {
    const HappensBefore before(plan_.schedule);
    plan_.arena_bytes.assign(plan_.devices.size(), 0);
    plan_.memory.arena = 0;
    std::vector<std::vector<uint32_t>> uses(plan_.storages.size());
    for (const Access& a : plan_.accesses) uses[size_t(a.space)].push_back(a.task);
    for (size_t d = 0; d < plan_.devices.size(); ++d) {
      std::vector<ArenaItem> items;
      std::vector<size_t> which;
      for (size_t k = 0; k < used_.size(); ++k) {
        const PlanStorage& storage = plan_.storages[k];
        if (!used_[k] || storage.residence != Residence::kArena) continue;
        if (storage.device != static_cast<int32_t>(d) || uses[k].empty()) continue;
        items.push_back({storage.bytes, uses[k][0], uses[k], 0, storage.kept});
        which.push_back(k);
      }
      plan_.arena_bytes[d] = place_arena(&items, before, alignment_);
      for (size_t i = 0; i < items.size(); ++i) plan_.storages[which[i]].offset = items[i].offset;
      plan_.memory.arena += plan_.arena_bytes[d];
    }
  }

  /// Bytes held between the first and the last use, in schedule order.
  void find_live_peak() {
    const size_t count = plan_.tasks.size();
    std::vector<size_t> position(count);
    for (size_t k = 0; k < count; ++k) position[plan_.schedule.order[k]] = k;
    std::vector<std::pair<size_t, size_t>> span(plan_.storages.size(), {count, 0});
    for (const Access& a : plan_.accesses) {
      auto& [first, last] = span[size_t(a.space)];
      first = std::min(first, position[a.task]);
      last = std::max(last, position[a.task]);
    }
    std::vector<int64_t> change(count + 1, 0);
    for (size_t k = 0; k < span.size(); ++k) {
      if (plan_.storages[k].residence != Residence::kArena || span[k].first == count) continue;
      change[span[k].first] += plan_.storages[k].bytes;
      if (plan_.storages[k].kept) continue;
      change[span[k].second + 1] -= plan_.storages[k].bytes;
    }
    int64_t live = 0;
    plan_.memory.live_peak = 0;
    for (size_t k = 0; k < count; ++k) {
      live += change[k];
      if (live <= plan_.memory.live_peak) continue;
      plan_.memory.live_peak = live;
      plan_.memory.peak_task = plan_.table.tasks[plan_.schedule.order[k]].name;
    }
  }

  void count_persistent() {
    MemoryReport& memory = plan_.memory;
    const int64_t alignment = plan_.devices[0]->alignment();
    for (const Value& value : draft_.graph().values()) {
      if (!persists(value.source)) continue;
      auto dims = bind(value.type.shape, {});
      if (!dims.ok()) continue;  // a symbolic one is refused by the Store
      const int64_t bytes = align_up(tensor_bytes(value.type.dtype, *dims), alignment);
      if (value.source == Source::kParameter) memory.parameters += bytes;
      if (value.source == Source::kBuffer) memory.buffers += bytes;
      if (value.source == Source::kState) memory.states += bytes;
      if (value.source == Source::kAccumulator) memory.accumulators += bytes;
    }
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<bool> used_;
  int64_t alignment_ = 1;
};

}  // namespace

Status lay_out_fixed(Draft* draft) { return Layout(draft).fixed(); }

void lay_out_arenas(Draft* draft) { Layout(draft).arenas(); }

// Storages of an arena become byte ranges of one space a device; the others stay spaces of their
// own.
void settle_accesses(Draft* draft) {
  Plan& plan = *draft->plan;
  for (Access& a : plan.accesses) {
    const PlanStorage& storage = plan.storages[size_t(a.space)];
    if (storage.residence != Residence::kArena) continue;
    a.offset = storage.offset;
    a.space = -1 - storage.device;
  }
}

std::string MemoryReport::text() const {
  return fmt::format(
      "parameters {}, buffers {}, optimizer state {}, accumulators {}, constants {}, inputs {}, "
      "outputs {}, arena {}: total {}{}",
      human_bytes(parameters), human_bytes(buffers), human_bytes(states), human_bytes(accumulators),
      human_bytes(constants), human_bytes(inputs), human_bytes(outputs), human_bytes(arena),
      human_bytes(total()), peak_task.empty() ? "" : "; most of the arena in use at " + peak_task);
}

}  // namespace gradrack
