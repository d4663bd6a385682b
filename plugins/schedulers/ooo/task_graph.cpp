// SPDX-License-Identifier: Apache-2.0
// Reading a request: see task_graph.hpp.
#include "task_graph.hpp"

#include <algorithm>
#include <limits>

namespace ooo {

TaskGraph::TaskGraph(const gradrack::sdk::Tasks& tasks, uint32_t wanted_streams) {
  streams = lanes = std::max(1u, std::min(wanted_streams, tasks.request().streams));
  read_tasks(tasks);
  read_buffers(tasks);
  rank_tasks();
}

void TaskGraph::read_tasks(const gradrack::sdk::Tasks& tasks) {
  const uint32_t count = tasks.size();
  // Sums over all tasks, with a wait before each, stay below the largest number.
  const int64_t most = std::numeric_limits<int64_t>::max() / 4 / (int64_t{count} + 1);
  wait_ns = std::clamp<int64_t>(tasks.wait_ns(), 0, most);
  deps.resize(count);
  readers.resize(count);
  for (uint32_t k = 0; k < count; ++k) {
    const gr_task_t& task = tasks[k];
    cost.push_back(std::clamp<int64_t>(task.cost_ns, 0, most));
    kind.push_back(task.kind);
    stage.push_back(task.stage);
    deps[k].assign(task.deps, task.deps + task.dep_count);
    for (const uint32_t dep : deps[k]) readers[dep].push_back(k);
    if (on_link(k)) lanes = streams + 1;
  }
}

void TaskGraph::read_buffers(const gradrack::sdk::Tasks& tasks) {
  uses.resize(size());
  freed.assign(size(), 0);
  const bool told = tasks.buffer_count() > 0;
  for (uint32_t k = 0; k < tasks.buffer_count(); ++k) {
    const gr_task_buffer_t& buffer = tasks.buffer(k);
    if (buffer.user_count == 0) continue;
    buffers.push_back({buffer.bytes,
                       (buffer.flags & GR_BUFFER_KEPT) != 0,
                       {buffer.users, buffer.users + buffer.user_count}});
  }
  for (uint32_t k = 0; !told && k < size(); ++k) {
    if (tasks[k].bytes_held != 0) buffers.push_back({tasks[k].bytes_held, true, {k}});
    freed[k] = tasks[k].bytes_freed;
  }
  for (uint32_t b = 0; b < buffers.size(); ++b) {
    for (const uint32_t user : buffers[b].users) uses[user].push_back(b);
  }
}

// Dependencies have smaller indices, so one walk from the end sees every reader first.
void TaskGraph::rank_tasks() {
  rank.assign(size(), 0);
  int64_t longest = 0, link = 0;
  for (uint32_t k = size(); k-- > 0;) {
    for (const uint32_t reader : readers[k]) rank[k] = std::max(rank[k], rank[reader]);
    rank[k] += cost[k];
    longest = std::max(longest, rank[k]);
    (on_link(k) ? link : sequential_ns) += cost[k];
  }
  bound_ns = std::max({longest, link, (sequential_ns + streams - 1) / streams});
}

}  // namespace ooo
