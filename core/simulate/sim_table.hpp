// SPDX-License-Identifier: Apache-2.0
// SimTable: tasks and the resources they share, as a file or a recipe describes them.
//
// First step of simulate/. It is the scheduler's TaskTable with what a simulation needs besides:
// devices, links, microbatches. Invariant: a task whose device index is not below devices.size()
// is a transfer on link `device - devices.size()`; the order of the tasks is a legal one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/schedule/task_table.hpp"

namespace gradrack {

struct SimDevice {
  std::string name;
  uint32_t streams = 1;
  int64_t memory_limit = 0;  ///< bytes; 0: none
};

/// Which transfer a link takes next.
enum class LinkPolicy {
  kFifo,        ///< the one that was ready first; at equal times the one ordered first
  kPriority,    ///< the one of smallest priority; one under way is finished first
  kPreemptive,  ///< the same, and one under way waits while a smaller one is there
};

struct SimLink {
  std::string name;
  int64_t latency_ns = 0;       ///< from the end of the transfer till it has arrived
  double bytes_per_second = 0;  ///< 0: transfers have durations of their own
  LinkPolicy policy = LinkPolicy::kFifo;
};

/// What a task has beyond the scheduler's view of it.
struct SimTask {
  int32_t microbatch = -1;      ///< -1: none
  int64_t priority = -1;        ///< of a transfer, smaller first; -1: its place in the order
  int64_t bytes_moved = 0;      ///< of a transfer
  int64_t bytes_freed = 0;      ///< at its end, whatever else has run
  std::vector<uint32_t> reads;  ///< tasks whose outputs it reads: sorted, unique
};

struct SimTable {
  std::string name;  ///< of the file, for messages
  TaskTable tasks;   ///< Task::name is the task's id in the file
  std::vector<SimTask> more;
  std::vector<SimDevice> devices;
  std::vector<SimLink> links;

  size_t size() const { return tasks.tasks.size(); }
  bool is_transfer(uint32_t task) const {
    return static_cast<size_t>(tasks.tasks[task].device) >= devices.size();
  }
  size_t link_of(uint32_t task) const {
    return static_cast<size_t>(tasks.tasks[task].device) - devices.size();
  }
  /// Index of the stage of that name, added when it is new.
  int32_t stage(const std::string& name);
};

/// Fills in what follows from the rest and checks it: dependencies sorted, transfers timed by their
/// link, bytes freed as a scheduler is told them. GR_INVALID_ARGUMENT names the task.
Status finish_table(SimTable* table);

/// Of task_kind.hpp, in the order of their numbers.
const std::vector<std::string>& task_kind_names();
/// "fifo", "priority", "preemptive".
const std::vector<std::string>& link_policy_names();

}  // namespace gradrack
