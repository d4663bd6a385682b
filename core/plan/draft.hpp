// SPDX-License-Identifier: Apache-2.0
// Draft: from a lowered graph to tasks and the storages that they touch, before any order or
// address.
//
// Third step of planning. Views share their root's storage; a value read in another memory than its
// own gets a copy there (draft_transfers.cpp); a commit of a new value is made in place where that
// is legal, by a copy otherwise (draft_writes.cpp); chains of element-wise kernels reuse their
// input's bytes. Invariant: tasks are in program order, and running them in it is right.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/plan/plan_class.hpp"

namespace gradrack {

/// One side of a copy: a storage, or a value's bytes in a memory, looked up at the end because a
/// commit or reuse in place may still move them.
struct CopyEnd {
  int32_t storage = -1;
  ValueId value = GR_NO_VALUE;  // where storage < 0
  int32_t memory = -1;
};

/// What a task does for undoing a failed run: see draft_undo.cpp.
enum class UndoRole { kNone, kCopy, kMarker };

/// A task in the making.
struct DraftTask {
  NodeGroup nodes;              // of the lowered graph; none: a copy
  std::vector<ValueId> inputs;  // at the border of the group
  std::vector<ValueId> outputs;
  gr_kernel_info_t info = {};
  CopyEnd from;  // of a copy
  CopyEnd to;
  int32_t kernel = -1;                   // index into plan->kernels
  const TaskOutline* outline = nullptr;  // of a kernel
  UndoRole undo = UndoRole::kNone;
};

/// A "memory" is the device that stands for it: see Plan::memory_of.
struct Draft {
  const PlanClass* plan_class = nullptr;
  const Lowered* lowered = nullptr;  // the class's
  const BoundGraph* bound = nullptr;
  Plan* plan = nullptr;                 // storages are put here
  std::vector<gr_kernel_info_t> infos;  // of each kernel of the plan
  std::vector<DraftTask> tasks;         // [first copies][nodes and transfers][last copies]
  std::vector<ValueId> root;            // of each value: itself, or what it is a view of
  std::vector<int32_t> storage;         // of each root value, where it is made; -1: none
  std::map<std::pair<ValueId, int32_t>, int32_t> copies;  // storages of roots in other memories
  std::vector<int32_t>
      result_storage;  // where a host-visible result is read, if not its root's; by value

  const Graph& graph() const { return lowered->graph; }
  int32_t storage_of(ValueId id) const { return storage[static_cast<size_t>(root_of(id))]; }
  ValueId root_of(ValueId id) const { return root[static_cast<size_t>(id)]; }
  PlanStorage& storage_at(int32_t index) const { return plan->storages[size_t(index)]; }
  int32_t add_storage(PlanStorage made);
  /// Memory in which a value is made, or kept by the Store.
  int32_t home_of(ValueId id) const { return plan->memory_of(storage_at(storage_of(id)).device); }
  /// The storage in which `memory` sees a value: its own or a copy; -1 when it has none there.
  int32_t storage_in(ValueId id, int32_t memory) const;
  int32_t storage_at_end(const CopyEnd& end) const {
    return end.storage >= 0 ? end.storage : storage_in(end.value, end.memory);
  }
  /// Device that runs a kernel task, and the memory it works in.
  int32_t device_of(const DraftTask& task) const { return lowered->device[task.nodes[0]]; }
  int32_t memory_of(const DraftTask& task) const { return plan->memory_of(device_of(task)); }
};

/// One task a kernel, and a storage of its own for every root value.
void draft_tasks(Draft* draft);
/// Brings every value into each memory where a kernel or the host reads it, by copy tasks beside
/// the kernels: once for each value and memory.
void draft_transfers(Draft* draft);
/// Commits: lets producers write into the written source's storage, or adds copy tasks.
Status draft_writes(Draft* draft);
/// Lets a kernel write over an input that only it reads, where the kernel allows it.
void draft_in_place(Draft* draft);
/// Copies of what commits replace, and the marker behind them, before the first commit.
void draft_undo(Draft* draft);
/// Fills plan->tasks, tensors, table, ports and accesses (without arena offsets) from the draft.
Status finish_draft(Draft* draft);

}  // namespace gradrack
