// SPDX-License-Identifier: Apache-2.0
// List scheduling under a cap: see list_order.hpp.
#include "list_order.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <set>

#include "lane_views.hpp"

namespace ooo {

namespace {

class ListScheduler {
 public:
  ListScheduler(const TaskGraph& graph, const std::vector<uint32_t>& precedence, uint32_t streams,
                int64_t cap)
      : graph_(graph),
        precedence_(precedence),
        streams_(streams),
        cap_(cap),
        views_(graph),
        free_(graph.lanes, 0),
        end_(graph.size(), 0),
        waits_for_(graph.size()) {
    plan_.lane.resize(graph.size());
  }

  Plan run() {
    for (uint32_t k = 0; k < graph_.size(); ++k) {
      waits_for_[k] = static_cast<uint32_t>(graph_.deps[k].size());
      if (waits_for_[k] == 0) coming_.push({0, k});
    }
    while (plan_.order.size() < graph_.size()) {
      for (; !coming_.empty() && coming_.top().first <= now_; coming_.pop()) {
        const uint32_t task = coming_.top().second;
        if (graph_.on_link(task)) {
          for_link_.push_back(task);
        } else {
          ready_.insert({precedence_[task], task});
        }
      }
      while (place_on_link() || place_first()) continue;
      if (!go_on()) place_least();
    }
    return std::move(plan_);
  }

 private:
  using Entry = std::pair<uint32_t, uint32_t>;  // precedence, task
  using Coming = std::pair<int64_t, uint32_t>;  // time, task

  int64_t start_on(uint32_t task, uint32_t lane) const {
    int64_t start = now_;
    for (const uint32_t dep : graph_.deps[task]) {
      start = std::max(start, end_[dep] + (plan_.lane[dep] == lane ? 0 : graph_.wait_ns));
    }
    return start;
  }

  /// A link takes what was ready first, and needs no memory of its own.
  bool place_on_link() {
    if (for_link_.empty() || free_[graph_.streams] > now_) return false;
    place(for_link_.front(), graph_.streams);
    for_link_.pop_front();
    return true;
  }

  /// Of the lanes that are free now and keep the cap, the one on which the task starts first: that
  /// of the dependency which ends last where there is a choice.
  uint32_t best_lane(uint32_t task) {
    uint32_t last = kNone, best = kNone;
    for (const uint32_t dep : graph_.deps[task]) {
      if (last == kNone || end_[dep] >= end_[last]) last = dep;
    }
    int64_t best_start = 0;
    for (uint32_t lane = 0; lane < streams_; ++lane) {
      if (free_[lane] > now_) continue;
      const int64_t start = start_on(task, lane);
      const bool near = last != kNone && plan_.lane[last] == lane;
      if (best != kNone && (start > best_start || (start == best_start && !near))) continue;
      if (cap_ != kNoLimit && views_.peek(task, lane, cap_) > cap_) continue;
      best = lane;
      best_start = start;
    }
    return best;
  }

  /// Of the first ready tasks one that a free lane can take. False: there is none.
  bool place_first() {
    uint32_t tries = 0;
    for (auto at = ready_.begin(); at != ready_.end(); ++at) {
      if (++tries > kTries || !any_free()) return false;
      const uint32_t task = at->second;
      const uint32_t lane = best_lane(task);
      if (lane == kNone) continue;
      ready_.erase(at);
      const int64_t start = start_on(task, lane);
      if (start > now_) {
        coming_.push({start, task});
      } else {
        place(task, lane);
      }
      return true;
    }
    return false;
  }

  /// No lane is at work and every ready task is over the cap: the one that needs least goes.
  void place_least() {
    Entry best = *ready_.begin();
    uint32_t best_lane = 0, tries = 0;
    int64_t least = kNoLimit;
    for (const Entry& entry : ready_) {
      if (++tries > kTries) break;
      for (uint32_t lane = 0; lane < streams_; ++lane) {
        const int64_t bytes = views_.peek(entry.second, lane, 0);
        if (bytes >= least) continue;
        least = bytes;
        best = entry;
        best_lane = lane;
      }
    }
    ready_.erase(best);
    place(best.second, best_lane);
  }

  bool any_free() const {
    return std::any_of(free_.begin(), free_.begin() + streams_,
                       [&](int64_t free) { return free <= now_; });
  }

  void place(uint32_t task, uint32_t lane) {
    if (cap_ != kNoLimit) views_.place(task, lane);
    plan_.order.push_back(task);
    plan_.lane[task] = lane;
    free_[lane] = end_[task] = start_on(task, lane) + graph_.cost[task];
    for (const uint32_t reader : graph_.readers[task]) {
      if (--waits_for_[reader] > 0) continue;
      int64_t at = 0;
      for (const uint32_t dep : graph_.deps[reader]) at = std::max(at, end_[dep]);
      coming_.push({at, reader});
    }
  }

  /// To the next moment at which something changes. False: nothing will.
  bool go_on() {
    int64_t next = kNoLimit;
    if (!coming_.empty()) next = coming_.top().first;
    for (const int64_t free : free_) {
      if (free > now_) next = std::min(next, free);
    }
    if (next == kNoLimit) return false;
    now_ = std::max(now_, next);
    return true;
  }

  static constexpr uint32_t kTries = 64;  // ready tasks that are looked at, to stay fast

  const TaskGraph& graph_;
  const std::vector<uint32_t>& precedence_;
  uint32_t streams_;
  int64_t cap_;
  LaneViews views_;
  std::vector<int64_t> free_;  // of each lane: from when on
  std::vector<int64_t> end_;
  std::vector<uint32_t> waits_for_;
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
  std::set<Entry> ready_;
  std::deque<uint32_t> for_link_;
  int64_t now_ = 0;
  Plan plan_;
};

}  // namespace

Plan list_order(const TaskGraph& graph, const std::vector<uint32_t>& precedence, uint32_t streams,
                int64_t cap) {
  return ListScheduler(graph, precedence, streams, cap).run();
}

}  // namespace ooo
