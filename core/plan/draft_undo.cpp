// SPDX-License-Identifier: Apache-2.0
// Undo copies: what lets a failed run leave parameters, buffers and state as they were.
//
// A run that fails between two commits would leave some tensors new and some old. So before the
// first task that writes one of them, each gets a copy in the arena that stays to the end of the
// run, and behind all copies, before every such task, the number of the run is copied to a marker.
// Whoever finds that number there after a failure knows that the copies are whole, and copies them
// back; whoever does not knows that nothing was written. That holds on any schedule, since what
// depends on work that failed is skipped. Accumulators are left out: a step begins by writing them.
//
// Where every task that may fail comes before every commit, whatever the order, a run either fails
// with nothing written or writes all, and no copies are made.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/plan/draft.hpp"

namespace gradrack {

namespace {

bool is_undone(const PlanStorage& storage) {
  return storage.residence == Residence::kStore && storage.source != Source::kAccumulator &&
         storage.bytes > 0;
}

/// A set of tasks that may fail, by their number among such tasks.
class TaskSet {
 public:
  explicit TaskSet(size_t count = 0) : words_((count + 63) / 64, 0) {}
  void add(size_t k) { words_[k / 64] |= uint64_t{1} << k % 64; }
  void add(const TaskSet& other) {
    for (size_t w = 0; w < other.words_.size(); ++w) words_[w] |= other.words_[w];
  }
  bool has(size_t count) const {  // the first `count` of all
    size_t found = 0;
    for (const uint64_t word : words_) found += static_cast<size_t>(__builtin_popcountll(word));
    return found == count;
  }

 private:
  std::vector<uint64_t> words_;
};

/// Whether every task that may fail is over before anything that is undone is written. What is
/// before what follows from storages alone, as in draft_finish.cpp.
class FailuresFirst {
 public:
  FailuresFirst(const Draft& draft, const std::vector<std::vector<int32_t>>& writes)
      : draft_(draft), writes_(writes) {}

  bool holds() {
    for (const DraftTask& task : draft_.tasks) failing_ += may_fail(task) ? 1 : 0;
    size_t failing_so_far = 0;
    for (size_t t = 0; t < draft_.tasks.size(); ++t) {
      TaskSet before(failing_);
      for (const int32_t storage : reads(draft_.tasks[t])) before.add(at(storage).written);
      bool commits = false;
      for (const int32_t storage : writes_[t]) {
        before.add(at(storage).written);
        before.add(at(storage).read);
        commits = commits || is_undone(draft_.storage_at(storage));
      }
      if (commits && !before.has(failing_)) return false;
      if (may_fail(draft_.tasks[t])) before.add(failing_so_far++);
      for (const int32_t storage : reads(draft_.tasks[t])) at(storage).read.add(before);
      for (const int32_t storage : writes_[t]) {
        at(storage).written = before;
        at(storage).read = TaskSet(failing_);
      }
    }
    return true;
  }

 private:
  struct Touched {
    TaskSet written, read;  // what is before its last writer, and before its readers since
  };

  static bool may_fail(const DraftTask& task) {
    return task.nodes.empty() || (task.info.flags & GR_KERNEL_CANNOT_FAIL) == 0;
  }

  std::vector<int32_t> reads(const DraftTask& task) const {
    if (task.nodes.empty()) return {draft_.storage_at_end(task.from)};
    std::vector<int32_t> out;
    for (const ValueId id : task.inputs) {
      out.push_back(draft_.storage_in(id, draft_.memory_of(task)));
    }
    return out;
  }

  Touched& at(int32_t storage) {
    return touched_.try_emplace(storage, Touched{TaskSet(failing_), TaskSet(failing_)})
        .first->second;
  }

  const Draft& draft_;
  const std::vector<std::vector<int32_t>>& writes_;  // by task
  size_t failing_ = 0;
  std::unordered_map<int32_t, Touched> touched_;
};

class UndoDrafter {
 public:
  explicit UndoDrafter(Draft* draft) : draft_(*draft) {}

  void run() {
    size_t first = draft_.tasks.size();
    std::vector<std::vector<int32_t>> writes;
    for (const DraftTask& task : draft_.tasks) writes.push_back(written_by(task));
    for (size_t t = draft_.tasks.size(); t-- > 0;) {
      for (const int32_t storage : writes[t]) {
        if (!is_undone(draft_.storage_at(storage))) continue;
        written_[storage] = draft_.storage_at(storage).device;
        first = t;
      }
    }
    if (written_.empty()) return;
    if (!draft_.plan_class->request.take_back && FailuresFirst(draft_, writes).holds()) {
      draft_.plan->undo.needless = true;
      return;
    }
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
