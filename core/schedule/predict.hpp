// SPDX-License-Identifier: Apache-2.0
// predict: when each task of a plan would run, by the costs in its table.
//
// Between a schedule and whoever weighs it: the host's check, explain, reports. A lane runs its
// tasks in order; a wait makes a task start no sooner than `wait_ns` after the end of what it waits
// for. Invariant: pure arithmetic, so the same table and schedule give the same answer. Knows no
// links and no contention; the simulation of tables from files does (core/simulate).
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/task_table.hpp"

namespace gradrack {

struct PredictedTask {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct Prediction {
  int64_t makespan_ns = 0;
  int64_t sequential_ns = 0;         // makespan of program order, one stream a device
  int64_t peak_bytes = 0;            // most bytes of the table's buffers that are live at once
  std::vector<PredictedTask> tasks;  // by task
  std::vector<int64_t> busy_ns;      // by lane
};

Prediction predict(const TaskTable& table, const Schedule& schedule);

/// Makespan of program order on one stream a device.
int64_t predict_sequential(const TaskTable& table);

/// Cost of the longest chain of tasks of which each depends on the one before: no schedule is
/// faster.
int64_t longest_chain_ns(const TaskTable& table);

/// Fills in the schedule's own figures.
void set_prediction(const TaskTable& table, Schedule* schedule);

}  // namespace gradrack
