// SPDX-License-Identifier: Apache-2.0
// TaskTable: the tasks of a plan as a scheduler sees them, and the bytes they touch.
//
// Between plan, which fills it, and schedule, which orders it. Invariant: tasks are in program
// order, itself a legal order, so each dependency is smaller than the task's own index. Knows no
// graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradrack {

struct Task {
  int32_t kind = 0;            // GR_KIND_*
  int32_t stage = -1;          // index into TaskTable::stages
  int32_t device = 0;          // index into the plan's devices
  int64_t cost_ns = 0;         // estimated or measured
  int64_t flops = 0;           // what its nodes cannot do without: plan/work.hpp
  int64_t bytes_moved = 0;     // likewise
  int64_t bytes_held = 0;      // of the outputs it makes
  int64_t bytes_freed = 0;     // whose last reader it is in program order
  std::vector<uint32_t> deps;  // sorted, unique
  std::string name;            // operator and outputs, for messages
};

/// Bytes that several tasks use: they are live from the start of the first of `users` to the end of
/// the last, or of the step.
struct TaskBuffer {
  int64_t bytes = 0;
  bool kept = false;            // to the end of the step
  std::vector<uint32_t> users;  // sorted: the tasks that read or write them
};

struct TaskTable {
  std::vector<Task> tasks;
  std::vector<std::string> stages;
  std::vector<TaskBuffer> buffers;
  int64_t wait_ns = 0;  // what a wait between streams costs
};

/// One task's use of a range of bytes. `space` numbers memories that cannot overlap.
struct Access {
  uint32_t task = 0;
  int32_t space = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  bool write = false;
};

}  // namespace gradrack
