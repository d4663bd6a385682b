// SPDX-License-Identifier: Apache-2.0
// Copies between memories: see draft.hpp.
//
// A backend copies between its own memory and the host's, so a value goes from one device to
// another in two copies, through a staging storage that readers in host memory share. A copy to the
// host stands right behind the kernel that makes the value, to be done by the time it is read; one
// to a device right before its first reader, to hold the device's bytes no longer than needed.
// Constants get no task: each memory that reads one is given its contents with the plan.
#include <algorithm>
#include <set>

#include "core/plan/draft.hpp"

namespace gradrack {

namespace {

class TransferDrafter {
 public:
  explicit TransferDrafter(Draft* draft) : draft_(*draft), after_(draft->tasks.size()) {
    for (size_t t = 0; t < draft_.tasks.size(); ++t) {
      for (const ValueId id : draft_.tasks[t].outputs) maker_[id] = t;
    }
  }

  void run() {
    std::vector<DraftTask> before;
    std::vector<std::vector<DraftTask>> before_all;
    for (const DraftTask& task : draft_.tasks) {
      before.clear();
      const int32_t memory = draft_.memory_of(task);
      for (const ValueId id : task.inputs) bring(id, memory, draft_.device_of(task), &before);
      before_all.push_back(before);
    }
    before.clear();
    show_results(&before);
    merge(before_all, std::move(before));
  }

 private:
  /// Gives `memory` the value, in the arena of `device`; a copy that cannot stand behind the
  /// value's maker is put into `before`.
  void bring(ValueId id, int32_t memory, int32_t device, std::vector<DraftTask>* before) {
    const ValueId root = draft_.root_of(id);
    if (draft_.storage_in(root, memory) >= 0) return;
    const int32_t host = draft_.plan->host, home = draft_.home_of(root);
    const bool constant = draft_.bound->at(root).constant;
    if (!constant && memory != host && home != host) bring(root, host, host, before);
    PlanStorage made;
    made.residence = constant ? Residence::kConstant : Residence::kArena;
    made.device = device;
    made.bytes = draft_.storage_at(draft_.storage_of(root)).bytes;
    draft_.copies[{root, memory}] = draft_.add_storage(made);
    if (constant || made.bytes == 0) return;
    DraftTask copy;
    copy.from = {-1, root, memory == host ? home : host};
    copy.to = {-1, root, memory};
    const auto maker = maker_.find(root);
    std::vector<DraftTask>& place =
        memory == host && maker != maker_.end() ? after_[maker->second] : *before;
    place.push_back(std::move(copy));
  }

  /// Results are read in host memory. What a write replaces is shown by a snapshot instead
  /// (draft_writes.cpp).
  void show_results(std::vector<DraftTask>* last) {
    const Graph& graph = draft_.graph();
    std::set<ValueId> written;
    for (const Write& write : graph.writes()) written.insert(write.target);
    const auto show = [&](ValueId id) {
      if (written.count(draft_.root_of(id)) == 0) {
        bring(id, draft_.plan->host, draft_.plan->host, last);
      }
    };
    for (const auto& [name, id] : graph.outputs()) show(id);
    for (const Objective& o : graph.objectives()) {
      show(o.sum);
      show(o.count);
    }
  }

  void merge(const std::vector<std::vector<DraftTask>>& before, std::vector<DraftTask> last) {
    std::vector<DraftTask> all;
    for (size_t t = 0; t < draft_.tasks.size(); ++t) {
      all.insert(all.end(), before[t].begin(), before[t].end());
      all.push_back(std::move(draft_.tasks[t]));
      all.insert(all.end(), after_[t].begin(), after_[t].end());
    }
    all.insert(all.end(), last.begin(), last.end());
    draft_.tasks = std::move(all);
  }

  Draft& draft_;
  std::map<ValueId, size_t> maker_;
  std::vector<std::vector<DraftTask>> after_;  // copies behind each task
};

}  // namespace

void draft_transfers(Draft* draft) { TransferDrafter(draft).run(); }

}  // namespace gradrack
