// SPDX-License-Identifier: Apache-2.0
// How written sources get their new values, and reuse of bytes in place: see draft.hpp.
//
// A producer writes straight into the source's storage when every reader of the old value comes
// before it in program order, or is the producer itself through an input that its kernel may
// overwrite. Otherwise a copy commits the value at the end. What reads a written source as a whole
// (a swap, an output) gets a snapshot at the start, so that commits need no order among themselves.
#include <algorithm>
#include <map>
#include <set>

#include "core/plan/draft.hpp"

namespace gradrack {

namespace {

class WriteDrafter {
 public:
  explicit WriteDrafter(Draft* draft) : draft_(*draft) {
    for (size_t t = 0; t < draft_.tasks.size(); ++t) {
      for (const ValueId id : draft_.tasks[t].inputs) readers_[draft_.root_of(id)].insert(t);
      for (const ValueId id : draft_.tasks[t].outputs) maker_[id] = t;
    }
  }

  Status run() {
    for (const Write& write : draft_.graph().writes()) {
      if (!targets_.insert(write.target).second) {
        return invalid_argument("'" + draft_.graph().value(write.target).name +
                                "' is written twice in one step");
      }
    }
    place_results();
    for (const Write& write : draft_.graph().writes()) commit(write);
    draft_.tasks.insert(draft_.tasks.begin(), first_.begin(), first_.end());
    draft_.tasks.insert(draft_.tasks.end(), last_.begin(), last_.end());
    return {};
  }

 private:
  static DraftTask copy_task(int32_t from, int32_t to) {
    DraftTask task;
    task.copy_from = from;
    task.copy_to = to;
    return task;
  }

  PlanStorage& storage_at(int32_t index) { return draft_.plan->storages[size_t(index)]; }

  /// A copy of a source's old value, made before anything else runs.
  int32_t snapshot(int32_t of, Residence residence) {
    PlanStorage made;
    made.residence = residence;
    made.bytes = storage_at(of).bytes;
    const int32_t to = draft_.add_storage(std::move(made));
    first_.push_back(copy_task(of, to));
    return to;
  }

  void place_result(ValueId id) {
    const ValueId root = draft_.root_of(id);
    const int32_t storage = draft_.storage_of(id);
    if (storage_at(storage).residence == Residence::kArena) {
      storage_at(storage).residence = Residence::kOutput;
      storage_at(storage).device = 0;
    } else if (targets_.count(root) > 0 && draft_.result_storage[static_cast<size_t>(id)] < 0) {
      draft_.result_storage[static_cast<size_t>(id)] = snapshot(storage, Residence::kOutput);
    }
  }

  void place_results() {
    for (const auto& [name, id] : draft_.graph().outputs()) place_result(id);
    for (const Objective& o : draft_.graph().objectives()) {
      place_result(o.sum);
      place_result(o.count);
    }
  }

  void commit(const Write& write) {
    const ValueId root = draft_.root_of(write.value);
    if (root == write.target) return;
    const int32_t to = draft_.storage_of(write.target);
    int32_t from = draft_.storage_of(write.value);
    if (targets_.count(root) > 0) from = snapshot(from, Residence::kArena);
    if (may_write_directly(root, write.target)) {
      draft_.storage[static_cast<size_t>(root)] = to;
    } else {
      last_.push_back(copy_task(from, to));
    }
  }

  bool may_write_directly(ValueId root, ValueId target) {
    const auto maker = maker_.find(root);
    if (maker == maker_.end() || draft_.bound->at(root).constant) return false;
    if (storage_at(draft_.storage_of(root)).residence == Residence::kStore) return false;
    const DraftTask& task = draft_.tasks[maker->second];
    for (const size_t reader : readers_[target]) {
      if (reader > maker->second) return false;
      if (reader == maker->second && !in_place_allowed(task, root, target)) return false;
    }
    return true;
  }

  bool in_place_allowed(const DraftTask& task, ValueId output, ValueId input) const {
    const auto at = std::find(task.outputs.begin(), task.outputs.end(), output);
    const auto k = static_cast<size_t>(at - task.outputs.begin());
    if (k >= GR_MAX_IN_PLACE || task.info.in_place[k] < 0) return false;
    const auto wanted = static_cast<size_t>(task.info.in_place[k]);
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      if ((draft_.root_of(task.inputs[i]) == input) != (i == wanted)) return false;
    }
    return true;
  }

  Draft& draft_;
  std::set<ValueId> targets_;
  std::map<ValueId, std::set<size_t>> readers_;  // of each root
  std::map<ValueId, size_t> maker_;
  std::vector<DraftTask> first_;
  std::vector<DraftTask> last_;
};

}  // namespace

Status draft_writes(Draft* draft) { return WriteDrafter(draft).run(); }

void draft_in_place(Draft* draft) {
  std::vector<int> reads(draft->graph().values().size(), 0);  // of each root
  std::set<int32_t> copied;
  for (const DraftTask& task : draft->tasks) {
    for (const ValueId id : task.inputs) ++reads[static_cast<size_t>(draft->root_of(id))];
    if (task.copy_from >= 0) copied.insert(task.copy_from);
  }
  const auto in_arena = [&](int32_t storage) {
    return draft->plan->storages[size_t(storage)].residence == Residence::kArena;
  };
  for (const DraftTask& task : draft->tasks) {
    std::set<int32_t> taken;
    const size_t outputs = std::min<size_t>(task.outputs.size(), GR_MAX_IN_PLACE);
    for (size_t k = 0; k < outputs; ++k) {
      const int32_t input = task.info.in_place[k];
      if (input < 0 || static_cast<size_t>(input) >= task.inputs.size()) continue;
      const ValueId source = draft->root_of(task.inputs[size_t(input)]);
      const int32_t from = draft->storage_of(source);
      const int32_t to = draft->storage_of(task.outputs[k]);
      const PlanStorage& a = draft->plan->storages[size_t(from)];
      const PlanStorage& b = draft->plan->storages[size_t(to)];
      if (!in_arena(from) || !in_arena(to) || reads[size_t(source)] != 1) continue;
      if (copied.count(from) > 0 || copied.count(to) > 0) continue;
      if (a.bytes != b.bytes || a.device != b.device || !taken.insert(from).second) continue;
      draft->storage[static_cast<size_t>(task.outputs[k])] = from;
    }
  }
}

}  // namespace gradrack
