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
      const DraftTask& task = draft_.tasks[t];
      if (task.nodes.empty()) {
        readers_[draft_.storage_at_end(task.from)].insert(t);
        continue;
      }
      const int32_t memory = draft_.memory_of(task);
      for (const ValueId id : task.inputs) readers_[draft_.storage_in(id, memory)].insert(t);
      for (const ValueId id : task.outputs) maker_[id] = t;
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
  void add_copy(std::vector<DraftTask>* tasks, CopyEnd from, CopyEnd to) {
    if (draft_.storage_at(draft_.storage_at_end(from)).bytes == 0) return;
    DraftTask task;
    task.from = from;
    task.to = to;
    tasks->push_back(std::move(task));
  }

  int32_t add_storage(Residence residence, int32_t device, int64_t bytes) {
    PlanStorage made;
    made.residence = residence;
    made.device = device;
    made.bytes = bytes;
    return draft_.add_storage(std::move(made));
  }

  /// A copy of a source's old value, made before anything else runs.
  int32_t snapshot(int32_t of, Residence residence, int32_t device) {
    const int32_t to = add_storage(residence, device, draft_.storage_at(of).bytes);
    add_copy(&first_, {of, GR_NO_VALUE, -1}, {to, GR_NO_VALUE, -1});
    return to;
  }

  void place_result(ValueId id) {
    const ValueId root = draft_.root_of(id);
    const int32_t host = draft_.plan->host;
    int32_t& snapshot_of = draft_.result_storage[static_cast<size_t>(id)];
    if (targets_.count(root) > 0) {
      if (snapshot_of < 0) {
        snapshot_of = snapshot(draft_.storage_of(root), Residence::kOutput, host);
      }
      return;
    }
    PlanStorage& storage = draft_.storage_at(draft_.storage_in(root, host));
    if (storage.residence != Residence::kArena) return;
    storage.residence = Residence::kOutput;
    storage.device = host;
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
    if (targets_.count(root) > 0) {
      const int32_t device = draft_.storage_at(to).device;
      const int32_t from = snapshot(draft_.storage_of(root), Residence::kArena, device);
      add_copy(&last_, {from, GR_NO_VALUE, -1}, {to, GR_NO_VALUE, -1});
    } else if (may_write_directly(root, write.target)) {
      draft_.storage[static_cast<size_t>(root)] = to;
    } else {
      copy_back(root, to);
    }
  }

  /// Copies a value to its target at the end, through host memory where it is on another device.
  void copy_back(ValueId root, int32_t to) {
    const int32_t target = draft_.plan->memory_of(draft_.storage_at(to).device);
    const int32_t host = draft_.plan->host;
    int32_t from = target;
    if (draft_.storage_in(root, from) < 0) from = host;
    if (draft_.storage_in(root, from) < 0) {
      from = draft_.home_of(root);
      if (target != host) {
        const int64_t bytes = draft_.storage_at(draft_.storage_of(root)).bytes;
        const int32_t staging = add_storage(Residence::kArena, host, bytes);
        draft_.copies[{root, host}] = staging;
        add_copy(&last_, {-1, root, from}, {staging, GR_NO_VALUE, -1});
        from = host;
      }
    }
    add_copy(&last_, {-1, root, from}, {to, GR_NO_VALUE, -1});
  }

  bool may_write_directly(ValueId root, ValueId target) {
    const auto maker = maker_.find(root);
    if (maker == maker_.end() || draft_.bound->at(root).constant) return false;
    if (draft_.storage_at(draft_.storage_of(root)).residence == Residence::kStore) return false;
    if (draft_.home_of(root) != draft_.home_of(target)) return false;
    const DraftTask& task = draft_.tasks[maker->second];
    for (const size_t reader : readers_[draft_.storage_of(target)]) {
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
  std::map<int32_t, std::set<size_t>> readers_;  // of each storage
  std::map<ValueId, size_t> maker_;
  std::vector<DraftTask> first_;
  std::vector<DraftTask> last_;
};

}  // namespace

Status draft_writes(Draft* draft) { return WriteDrafter(draft).run(); }

namespace {

/// Finds where a kernel may write over an input that only it reads.
class InPlaceDrafter {
 public:
  explicit InPlaceDrafter(Draft* draft) : draft_(*draft) {
    for (const DraftTask& task : draft_.tasks) {
      if (task.nodes.empty()) {
        ends_.insert(draft_.storage_at_end(task.from));
        // A transfer's copy is its readers' own; what else a copy fills is not.
        if (task.to.storage >= 0) ends_.insert(task.to.storage);
        continue;
      }
      const int32_t memory = draft_.memory_of(task);
      for (const ValueId id : task.inputs) ++reads_[{draft_.root_of(id), memory}];
    }
  }

  void run() {
    for (const DraftTask& task : draft_.tasks) {
      std::set<int32_t> taken;
      const size_t outputs = std::min<size_t>(task.outputs.size(), GR_MAX_IN_PLACE);
      for (size_t k = 0; k < outputs; ++k) try_output(task, k, &taken);
    }
  }

 private:
  bool in_arena(int32_t storage) const {
    return draft_.storage_at(storage).residence == Residence::kArena;
  }

  void try_output(const DraftTask& task, size_t k, std::set<int32_t>* taken) {
    const int32_t input = task.info.in_place[k];
    if (input < 0 || static_cast<size_t>(input) >= task.inputs.size()) return;
    const ValueId source = draft_.root_of(task.inputs[size_t(input)]);
    const int32_t memory = draft_.memory_of(task);
    const int32_t from = draft_.storage_in(source, memory);
    const int32_t to = draft_.storage_of(task.outputs[k]);
    const PlanStorage& a = draft_.storage_at(from);
    const PlanStorage& b = draft_.storage_at(to);
    if (!in_arena(from) || !in_arena(to) || reads_[{source, memory}] != 1) return;
    if (ends_.count(from) > 0 || ends_.count(to) > 0) return;
    if (a.bytes != b.bytes || a.device != b.device || !taken->insert(from).second) return;
    draft_.storage[static_cast<size_t>(task.outputs[k])] = from;
  }

  Draft& draft_;
  std::map<std::pair<ValueId, int32_t>, int> reads_;  // of each root, by the memory it is read in
  std::set<int32_t> ends_;                            // storages that copies read or fill
};

}  // namespace

void draft_in_place(Draft* draft) { InPlaceDrafter(draft).run(); }

}  // namespace gradrack
