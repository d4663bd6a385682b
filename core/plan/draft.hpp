// SPDX-License-Identifier: Apache-2.0
// Draft: from a lowered graph to tasks and the storages that they touch, before any order or
// address.
//
// Third step of planning. Views share their root's storage; a commit of a new value is made in
// place where that is legal, by a copy otherwise (draft_writes.cpp); chains of element-wise kernels
// reuse their input's bytes. Invariant: tasks are in program order, and running them in it is
// right.
#pragma once

#include <memory>
#include <vector>

#include "core/plan/groups.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

/// A task in the making.
struct DraftTask {
  NodeGroup nodes;              // of the lowered graph; none: a copy
  std::vector<ValueId> inputs;  // at the border of the group
  std::vector<ValueId> outputs;
  gr_kernel_info_t info = {};
  int32_t copy_from = -1;  // storages of a copy
  int32_t copy_to = -1;
};

struct Draft {
  const Lowered* lowered = nullptr;
  const BoundGraph* bound = nullptr;
  Plan* plan = nullptr;  // storages, kernels are put here
  std::vector<std::vector<int32_t>>
      readers;                   // of each value: live nodes, -1 for results and writes
  std::vector<DraftTask> tasks;  // [first copies][nodes][last copies]
  std::vector<ValueId> root;     // of each value: itself, or what it is a view of
  std::vector<int32_t> storage;  // of each root value; -1: none
  std::vector<int32_t>
      result_storage;  // where a host-visible result is read, if not its root's; by value

  const Graph& graph() const { return lowered->graph; }
  int32_t storage_of(ValueId id) const { return storage[static_cast<size_t>(root_of(id))]; }
  ValueId root_of(ValueId id) const { return root[static_cast<size_t>(id)]; }
  int32_t add_storage(PlanStorage made);
};

/// Prepares kernels, one task a group, and gives every root value a storage of its own.
Status draft_tasks(Draft* draft);
/// Commits: lets producers write into the written source's storage, or adds copy tasks.
Status draft_writes(Draft* draft);
/// Lets a kernel write over an input that only it reads, where the kernel allows it.
void draft_in_place(Draft* draft);
/// Fills plan->tasks, tensors, table, ports and accesses (without arena offsets) from the draft.
Status finish_draft(Draft* draft);

}  // namespace gradrack
