// SPDX-License-Identifier: Apache-2.0
// Plan: an order and a lane per task, and what it comes to.
//
// Times are those of the host's prediction: a lane runs its tasks in order, each when the one
// before and all that it depends on have ended, and `wait_ns` later where that was on another lane.
#pragma once

#include "task_graph.hpp"

namespace ooo {

struct Plan {
  std::vector<uint32_t> order;
  std::vector<uint32_t> lane;  // of each task
};

/// Tasks in the order of the request on lane 0, collectives on theirs.
Plan program_order(const TaskGraph& graph);

int64_t makespan_ns(const TaskGraph& graph, const Plan& plan);

}  // namespace ooo
