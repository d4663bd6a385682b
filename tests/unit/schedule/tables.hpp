// SPDX-License-Identifier: Apache-2.0
// Task tables for tests: by their dependencies, and drawn at random.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/schedule/task_table.hpp"

namespace gradrack::testing {

/// Tasks "t0", "t1", ... of those dependencies and costs (1 where there are none).
inline TaskTable table_of(const std::vector<std::vector<uint32_t>>& deps,
                          const std::vector<int64_t>& costs = {}) {
  TaskTable table;
  for (const auto& each : deps) {
    Task task;
    task.name = "t" + std::to_string(table.tasks.size());
    task.cost_ns = costs.empty() ? 1 : costs[table.tasks.size()];
    task.deps = each;
    table.tasks.push_back(task);
  }
  return table;
}

/// Each task depends on some of the six before it.
inline TaskTable random_table(uint32_t seed, uint32_t count) {
  std::mt19937 draw(seed);
  std::vector<std::vector<uint32_t>> deps(count);
  for (uint32_t t = 1; t < count; ++t) {
    for (uint32_t dep = t > 6 ? t - 6 : 0; dep < t; ++dep) {
      if (draw() % 3 == 0) deps[t].push_back(dep);
    }
  }
  return table_of(deps);
}

}  // namespace gradrack::testing
