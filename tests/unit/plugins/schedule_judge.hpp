// SPDX-License-Identifier: Apache-2.0
// For tests of schedulers: random task graphs, a scheduler's answer, and the optimum by trying all.
//
// Shares no code with any scheduler; the answer's time is the host's prediction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/schedule/predict.hpp"
#include "core/schedule/schedule.hpp"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {

/// Up to two dependencies a task, one buffer a task, read by those that depend on it.
inline TaskTable random_tasks(std::mt19937& draw, uint32_t count) {
  TaskTable table;
  table.tasks.resize(count);
  table.buffers.resize(count);
  for (uint32_t k = 0; k < count; ++k) {
    Task& task = table.tasks[k];
    task.kind = static_cast<int32_t>(draw() % 4);
    task.cost_ns = 1 + draw() % 100;
    for (uint32_t d = k == 0 ? 0 : draw() % 3; d > 0; --d) task.deps.push_back(draw() % k);
    std::sort(task.deps.begin(), task.deps.end());
    task.deps.erase(std::unique(task.deps.begin(), task.deps.end()), task.deps.end());
    table.buffers[k].bytes = 1 + draw() % 64;
    table.buffers[k].users.push_back(k);
    for (const uint32_t dep : task.deps) table.buffers[dep].users.push_back(k);
  }
  return table;
}

struct Answer {
  int32_t status = GR_INTERNAL;
  std::string message;
  std::vector<uint32_t> order, stream;
  Schedule schedule;  // where the answer is legal
  int64_t makespan_ns = 0;
};

inline Answer ask(const Instance<gr_scheduler_t>& plugin, const TaskTable& table, uint32_t streams,
                  int64_t limit = 0) {
  const TaskRequest request(table, streams, limit);
  Answer answer;
  answer.order.resize(table.tasks.size());
  answer.stream.resize(table.tasks.size());
  gr_error_t err = {};
  answer.status = plugin->schedule(plugin.self(), request.get(), answer.order.data(),
                                   answer.stream.data(), &err);
  answer.message = err.message;
  if (answer.status != GR_OK) return answer;
  auto made = schedule_from(table, answer.order, answer.stream, streams);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok()) return answer;
  answer.schedule = std::move(*made);
  answer.makespan_ns = predict(table, answer.schedule).makespan_ns;
  return answer;
}

/// Least makespan of all orders and streams of at most 16 tasks whose buffers fit: no set of them,
/// each two of which may be live at once, is over the limit.
class BruteForce {
 public:
  BruteForce(const TaskTable& table, uint32_t streams, int64_t limit)
      : table_(table), streams_(streams), limit_(limit), count_(table.tasks.size()) {
    rank_.assign(count_, 0);
    users_.assign(count_, 0);
    for (size_t k = count_; k-- > 0;) {
      rank_[k] += table.tasks[k].cost_ns;
      for (const uint32_t dep : table.tasks[k].deps) rank_[dep] = std::max(rank_[dep], rank_[k]);
      for (const uint32_t user : table.buffers[k].users) users_[k] |= 1u << user;
    }
  }

  /// Below `known` (a makespan that can be had), or `known`.
  int64_t run(int64_t known) {
    best_ = known;
    place(0, 0, 0, 0);
    return best_;
  }

 private:
  static constexpr size_t kMost = 16;

  void place(uint32_t done, uint32_t used, int64_t last_start, int64_t makespan) {
    if (done == (1u << count_) - 1) {
      best_ = makespan;
      return;
    }
    if (bound(done, last_start, makespan) >= best_) return;
    for (uint32_t task = 0; task < count_; ++task) {
      uint32_t needs = 0;
      for (const uint32_t dep : table_.tasks[task].deps) needs |= 1u << dep;
      if ((done >> task & 1) != 0 || (needs & ~done) != 0) continue;
      for (uint32_t lane = 0; lane < std::min(streams_, used + 1); ++lane) {
        try_lane(done, used, last_start, makespan, task, lane);
      }
    }
  }

  void try_lane(uint32_t done, uint32_t used, int64_t last_start, int64_t makespan, uint32_t task,
                uint32_t lane) {
    int64_t start = free_[lane];
    uint32_t past = tail_[lane];
    for (const uint32_t dep : table_.tasks[task].deps) {
      start = std::max(start, end_[dep] + (lane_[dep] == lane ? 0 : table_.wait_ns));
      past |= past_[dep] | 1u << dep;
    }
    if (start < last_start || start + rank_[task] >= best_) return;
    past_[task] = past;
    if (limit_ > 0 && heaviest(done, task) > limit_) return;
    const int64_t free = free_[lane];
    const uint32_t tail = tail_[lane];
    free_[lane] = end_[task] = start + table_.tasks[task].cost_ns;
    tail_[lane] = past | 1u << task;
    lane_[task] = lane;
    place(done | 1u << task, std::max(used, lane + 1), start, std::max(makespan, end_[task]));
    free_[lane] = free;
    tail_[lane] = tail;
  }

  int64_t bound(uint32_t done, int64_t last_start, int64_t makespan) const {
    int64_t most = makespan, work = 0;
    for (uint32_t task = 0; task < count_; ++task) {
      if ((done >> task & 1) != 0) continue;
      most = std::max(most, last_start + rank_[task]);
      work += table_.tasks[task].cost_ns;
    }
    for (uint32_t lane = 0; lane < streams_; ++lane) work += std::max(free_[lane], last_start);
    return std::max(most, (work + streams_ - 1) / streams_);
  }

  /// Most bytes of a set with the buffer of `task`, each two of which may be live at once.
  int64_t heaviest(uint32_t done, uint32_t task) const {
    return heaviest(beside(task) & done, table_.buffers[task].bytes);
  }
  int64_t heaviest(uint32_t among, int64_t have) const {
    int64_t most = have;
    for (; among != 0; among &= among - 1) {
      const auto first = static_cast<uint32_t>(__builtin_ctz(among));
      most = std::max(
          most, heaviest(among & (among - 1) & beside(first), have + table_.buffers[first].bytes));
    }
    return most;
  }
  /// Buffers that are not surely done with before that of `task` is made, nor made after.
  uint32_t beside(uint32_t task) const {
    uint32_t out = 0;
    for (uint32_t k = 0; k < count_; ++k) {
      const bool before = (users_[k] & ~past_[task]) == 0, after = (users_[task] & ~past_[k]) == 0;
      if (k != task && !before && !after) out |= 1u << k;
    }
    return out;
  }

  const TaskTable& table_;
  uint32_t streams_;
  int64_t limit_;
  size_t count_;
  std::vector<int64_t> rank_;
  std::vector<uint32_t> users_;
  int64_t best_ = 0;
  int64_t free_[8] = {};
  uint32_t tail_[8] = {};  // what a lane has seen end: its row, and what that depends on
  int64_t end_[kMost] = {};
  uint32_t lane_[kMost] = {};
  uint32_t past_[kMost] = {};
};

}  // namespace gradrack::testing
