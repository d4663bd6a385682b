// SPDX-License-Identifier: Apache-2.0
// What a plan comes to: see plan.hpp.
#include "plan.hpp"

#include <algorithm>
#include <numeric>

namespace ooo {

Plan program_order(const TaskGraph& graph) {
  Plan plan;
  plan.order.resize(graph.size());
  std::iota(plan.order.begin(), plan.order.end(), 0u);
  for (uint32_t k = 0; k < graph.size(); ++k) {
    plan.lane.push_back(graph.on_link(k) ? graph.streams : 0);
  }
  return plan;
}

int64_t makespan_ns(const TaskGraph& graph, const Plan& plan) {
  std::vector<int64_t> free(graph.lanes, 0), end(graph.size(), 0);
  int64_t makespan = 0;
  for (const uint32_t task : plan.order) {
    const uint32_t lane = plan.lane[task];
    int64_t start = free[lane];
    for (const uint32_t dep : graph.deps[task]) {
      start = std::max(start, end[dep] + (plan.lane[dep] == lane ? 0 : graph.wait_ns));
    }
    free[lane] = end[task] = start + graph.cost[task];
    makespan = std::max(makespan, end[task]);
  }
  return makespan;
}

}  // namespace ooo
