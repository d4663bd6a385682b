// SPDX-License-Identifier: Apache-2.0
// Undo copies: what lets a failed run leave parameters, buffers and state as they were.
//
// A run that fails between two commits would leave some tensors new and some old. So before the
// first task that writes one of them, each gets a copy in the arena that stays to the end of the
// run, and behind all copies, before every such task, the number of the run is copied to a marker.
// Whoever finds that number there after a failure knows that the copies are whole, and copies them
// back; whoever does not knows that nothing was written. That holds on any schedule, since what
// depends on work that failed is skipped. Accumulators are left out: a step begins by writing them.
#include <algorithm>
#include <map>

#include "core/plan/draft.hpp"

namespace gradrack {

namespace {

bool is_undone(const PlanStorage& storage) {
  return storage.residence == Residence::kStore && storage.source != Source::kAccumulator &&
         storage.bytes > 0;
}

class UndoDrafter {
 public:
  explicit UndoDrafter(Draft* draft) : draft_(*draft) {}

  void run() {
    size_t first = draft_.tasks.size();
    for (size_t t = draft_.tasks.size(); t-- > 0;) {
      for (const int32_t storage : written_by(draft_.tasks[t])) {
        if (!is_undone(draft_.storage_at(storage))) continue;
        written_[storage] = draft_.storage_at(storage).device;
        first = t;
      }
    }
    if (written_.empty()) return;
    std::vector<DraftTask> copies;
    for (const auto& [storage, device] : written_) {
      copies.push_back(copy(storage, kept(device, draft_.storage_at(storage).bytes)));
      copies.back().undo = UndoRole::kCopy;
    }
    PlanStorage number;  // of the run; the executor writes it
    number.residence = Residence::kInput;
    number.device = draft_.plan->host;
    number.bytes = sizeof(int64_t);
    const int32_t marker = kept(written_.begin()->second, number.bytes);
    copies.push_back(copy(draft_.add_storage(std::move(number)), marker));
    copies.back().undo = UndoRole::kMarker;
    draft_.tasks.insert(draft_.tasks.begin() + static_cast<std::ptrdiff_t>(first), copies.begin(),
                        copies.end());
  }

 private:
  std::vector<int32_t> written_by(const DraftTask& task) const {
    if (task.nodes.empty()) return {draft_.storage_at_end(task.to)};
    std::vector<int32_t> out;
    for (const ValueId id : task.outputs) {
      if (!draft_.bound->at(id).constant) out.push_back(draft_.storage_of(id));
    }
    return out;
  }

  int32_t kept(int32_t device, int64_t bytes) {
    PlanStorage made;
    made.device = device;
    made.bytes = bytes;
    made.kept = true;
    return draft_.add_storage(std::move(made));
  }

  static DraftTask copy(int32_t from, int32_t to) {
    DraftTask task;
    task.from = {from, GR_NO_VALUE, -1};
    task.to = {to, GR_NO_VALUE, -1};
    return task;
  }

  Draft& draft_;
  std::map<int32_t, int32_t> written_;  // storages of the Store, and their devices
};

}  // namespace

void draft_undo(Draft* draft) { UndoDrafter(draft).run(); }

}  // namespace gradrack
