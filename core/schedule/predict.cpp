// SPDX-License-Identifier: Apache-2.0
// Prediction by list arithmetic: see predict.hpp.
#include "core/schedule/predict.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace gradrack {

namespace {

void time_tasks(const TaskTable& table, const Schedule& schedule, Prediction* out) {
  out->tasks.resize(table.tasks.size());
  out->busy_ns.assign(schedule.lanes.size(), 0);
  std::vector<int64_t> free_from(schedule.lanes.size(), 0);
  auto wait = schedule.waits.begin();
  for (const uint32_t task : schedule.order) {
    const uint32_t lane = schedule.lane[task];
    int64_t start = free_from[lane];
    for (; wait != schedule.waits.end() && wait->task == task; ++wait) {
      start = std::max(start, out->tasks[wait->on].end_ns + table.wait_ns);
    }
    const int64_t cost = table.tasks[task].cost_ns;
    out->tasks[task] = {start, start + cost};
    free_from[lane] = start + cost;
    out->busy_ns[lane] += cost;
    out->makespan_ns = std::max(out->makespan_ns, start + cost);
  }
}

/// Walks the tasks by their start. What has ended by then gives its bytes back first, as one lane's
/// tasks may use the same bytes in turn.
int64_t peak_of(const TaskTable& table, const Schedule& schedule, const Prediction& times) {
  std::vector<uint32_t> by_start = schedule.order;
  std::stable_sort(by_start.begin(), by_start.end(), [&](uint32_t a, uint32_t b) {
    return times.tasks[a].start_ns < times.tasks[b].start_ns;
  });
  std::vector<size_t> place(by_start.size());
  for (size_t k = 0; k < by_start.size(); ++k) place[by_start[k]] = k;
  std::vector<std::vector<size_t>> taken(by_start.size());  // buffers, by the task that is first
  for (size_t k = 0; k < table.buffers.size(); ++k) {
    const std::vector<uint32_t>& users = table.buffers[k].users;
    if (users.empty()) continue;
    const auto sooner = [&](uint32_t a, uint32_t b) { return place[a] < place[b]; };
    taken[place[*std::min_element(users.begin(), users.end(), sooner)]].push_back(k);
  }
  using Release = std::pair<int64_t, int64_t>;  // moment and bytes
  std::priority_queue<Release, std::vector<Release>, std::greater<>> releases;
  int64_t live = 0, peak = 0;
  for (size_t k = 0; k < by_start.size(); ++k) {
    for (; !releases.empty() && releases.top().first <= times.tasks[by_start[k]].start_ns;
         releases.pop()) {
      live -= releases.top().second;
    }
    for (const size_t index : taken[k]) {
      const TaskBuffer& buffer = table.buffers[index];
      live += buffer.bytes;
      if (buffer.kept) continue;
      int64_t end = 0;
      for (const uint32_t user : buffer.users) end = std::max(end, times.tasks[user].end_ns);
      releases.push({end, buffer.bytes});
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace

Prediction predict(const TaskTable& table, const Schedule& schedule) {
  Prediction out;
  time_tasks(table, schedule, &out);
  out.sequential_ns = predict_sequential(table);
  out.peak_bytes = peak_of(table, schedule, out);
  return out;
}

int64_t predict_sequential(const TaskTable& table) {
  std::map<int32_t, int64_t> free_from;  // by device
  std::vector<int64_t> end(table.tasks.size(), 0);
  int64_t makespan = 0;
  for (size_t t = 0; t < table.tasks.size(); ++t) {
    const Task& task = table.tasks[t];
    int64_t& device = free_from[task.device];
    for (const uint32_t dep : task.deps) {
      if (table.tasks[dep].device != task.device) {
        device = std::max(device, end[dep] + table.wait_ns);
      }
    }
    device = end[t] = device + task.cost_ns;
    makespan = std::max(makespan, end[t]);
  }
  return makespan;
}

int64_t longest_chain_ns(const TaskTable& table) {
  std::vector<int64_t> end(table.tasks.size(), 0);
  int64_t longest = 0;
  for (size_t t = 0; t < table.tasks.size(); ++t) {
    for (const uint32_t dep : table.tasks[t].deps) end[t] = std::max(end[t], end[dep]);
    end[t] += table.tasks[t].cost_ns;
    longest = std::max(longest, end[t]);
  }
  return longest;
}

void set_prediction(const TaskTable& table, Schedule* schedule) {
  const Prediction made = predict(table, *schedule);
  schedule->predicted_ns = made.makespan_ns;
  schedule->sequential_ns = made.sequential_ns;
}

}  // namespace gradrack
