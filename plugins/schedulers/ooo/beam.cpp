// SPDX-License-Identifier: Apache-2.0
// Beam search: see beam.hpp. Sets of tasks and buffers are bits of a word.
#include "beam.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace ooo {

namespace {

constexpr uint32_t kTasks = 14;
constexpr uint32_t kBuffers = 32;
constexpr uint32_t kLanes = 9;

uint64_t bit(uint32_t k) { return uint64_t{1} << k; }

template <typename Visit>
void each_bit(uint64_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<uint32_t>(std::countr_zero(bits)));
}

/// A beginning: the first tasks of a schedule.
struct Beginning {
  uint64_t done = 0;  // tasks
  uint64_t made = 0;  // buffers
  uint32_t placed = 0;
  uint32_t used = 0;       // streams
  int64_t last_start = 0;  // of the task placed last
  uint32_t last = kNone;
  int64_t makespan = 0;
  int64_t bytes = 0;  // most so far, where the least are looked for
  std::array<int64_t, kLanes> free = {};
  std::array<uint32_t, kLanes> tail = {};  // last task of each lane
  std::array<uint8_t, kTasks> order = {};
  std::array<uint8_t, kTasks> lane = {};
  std::array<int64_t, kTasks> end = {};
  std::array<uint64_t, kTasks> past = {};      // tasks that have surely ended when it starts
  std::array<uint64_t, kBuffers> beside = {};  // buffers that may be live at once with it
};

/// A task more on a beginning, not yet put there.
struct Step {
  uint64_t done = 0;
  int64_t bound = 0;
  int64_t bytes = 0;
  uint32_t from = 0;
  uint32_t task = 0;
  uint32_t lane = 0;
  int64_t start = 0;
  uint64_t past = 0;
  uint64_t beside = 0;
  bool operator<(const Step& o) const {
    return std::tie(done, bound, bytes, from, task, lane) <
           std::tie(o.done, o.bound, o.bytes, o.from, o.task, o.lane);
  }
};

class Beam {
 public:
  Beam(const TaskGraph& graph, const BeamGoal& goal) : graph_(graph), goal_(goal) {
    for (uint32_t k = 0; k < graph.size(); ++k) {
      for (const uint32_t dep : graph.deps[k]) deps_[k] |= bit(dep);
    }
    for (uint32_t b = 0; b < graph.buffers.size(); ++b) {
      const Buffer& buffer = graph.buffers[b];
      for (const uint32_t user : buffer.users) users_[b] |= bit(user);
      if (buffer.kept) users_[b] |= bit(kForever);
      makes_[buffer.users.front()] |= bit(b);
    }
  }

  BeamAnswer run(size_t width, int64_t* nodes) {
    BeamAnswer answer;
    std::vector<Beginning> now(1), next;
    now[0].tail.fill(kNone);
    for (uint32_t placed = 0; placed < graph_.size(); ++placed) {
      std::vector<Step> steps;
      for (uint32_t k = 0; k < now.size(); ++k) add_steps(now[k], k, &steps);
      *nodes -= static_cast<int64_t>(steps.size());
      if (steps.size() > width) {
        keep_best(width, &steps);
        answer.all = false;
      }
      next.clear();
      for (const Step& step : steps) next.push_back(grown(now[step.from], step));
      now.swap(next);
    }
    const auto best =
        std::min_element(now.begin(), now.end(), [](const Beginning& a, const Beginning& b) {
          return std::tie(a.makespan, a.bytes) < std::tie(b.makespan, b.bytes);
        });
    if (best == now.end()) return answer;
    answer.plan = Plan{{best->order.begin(), best->order.begin() + graph_.size()},
                       {best->lane.begin(), best->lane.begin() + graph_.size()}};
    return answer;
  }

 private:
  /// About `width`, as many of each set of placed tasks: the fastest, and as many of those that
  /// hold less than all that are faster.
  void keep_best(size_t width, std::vector<Step>* steps) const {
    std::sort(steps->begin(), steps->end());
    size_t groups = 1;
    for (size_t k = 1; k < steps->size(); ++k) {
      groups += (*steps)[k].done != (*steps)[k - 1].done ? 1 : 0;
    }
    const size_t share = std::max<size_t>(1, width / 2 / groups);
    std::vector<Step> kept;
    for (auto at = steps->begin(); at != steps->end();) {
      const auto end =
          std::find_if(at, steps->end(), [&](const Step& step) { return step.done != at->done; });
      int64_t least = kNoLimit;
      size_t lean = 0, fast = 0;
      for (; at != end; ++at) {
        const bool leaner = at->bytes < least;
        if (leaner ? lean >= share : fast >= share) continue;
        ++(leaner ? lean : fast);
        least = std::min(least, at->bytes);
        kept.push_back(*at);
      }
    }
    steps->swap(kept);
  }

  void add_steps(const Beginning& begun, uint32_t index, std::vector<Step>* steps) const {
    const int64_t reached = bound_of(begun);
    for (uint32_t task = 0; task < graph_.size(); ++task) {
      if ((begun.done >> task & 1) != 0 || (deps_[task] & ~begun.done) != 0) continue;
      const bool link = graph_.on_link(task);
      const uint32_t first = link ? graph_.streams : 0;
      const uint32_t end = link ? graph_.lanes : std::min(goal_.streams, begun.used + 1);
      for (uint32_t lane = first; lane < end; ++lane) {
        Step step;
        step.done = begun.done | bit(task);
        step.bound = reached;
        step.from = index;
        step.task = task;
        step.lane = lane;
        step.start = begun.free[lane];
        for (const uint32_t dep : graph_.deps[task]) {
          const int64_t wait = begun.lane[dep] == lane ? 0 : graph_.wait_ns;
          step.start = std::max(step.start, begun.end[dep] + wait);
        }
        // Each schedule once: in the order of starts, then of numbers.
        if (step.start < begun.last_start) continue;
        if (step.start == begun.last_start && begun.last != kNone && task < begun.last &&
            (deps_[task] & bit(begun.last)) == 0) {
          continue;
        }
        step.bound = std::max(step.bound, step.start + graph_.rank[task]);
        if (step.bound >= goal_.below_ns || !keeps_cap(begun, &step)) continue;
        if (goal_.least_bytes) step.bound = step.bytes = std::max(step.bytes, begun.bytes);
        steps->push_back(step);
      }
    }
  }

  int64_t bound_of(const Beginning& begun) const {
    int64_t bound = begun.makespan, work = 0;
    for (uint32_t task = 0; task < graph_.size(); ++task) {
      if ((begun.done >> task & 1) != 0) continue;
      int64_t start = begun.last_start;
      for (const uint32_t dep : graph_.deps[task]) start = std::max(start, begun.end[dep]);
      bound = std::max(bound, start + graph_.rank[task]);
      if (!graph_.on_link(task)) work += graph_.cost[task];
    }
    for (uint32_t lane = 0; lane < goal_.streams; ++lane) {
      work += std::max(begun.free[lane], begun.last_start);
    }
    return std::max(bound, (work + goal_.streams - 1) / goal_.streams);
  }

  bool keeps_cap(const Beginning& begun, Step* step) const {
    for (const uint32_t dep : graph_.deps[step->task]) step->past |= begun.past[dep] | bit(dep);
    const uint32_t tail = begun.tail[step->lane];
    if (tail != kNone) step->past |= begun.past[tail] | bit(tail);
    each_bit(begun.made, [&](uint32_t b) {
      if ((users_[b] & ~step->past) == 0) return;
      step->beside |= bit(b);
      step->bytes += graph_.buffers[b].bytes;
    });
    int64_t made = 0;
    each_bit(makes_[step->task], [&](uint32_t b) { made += graph_.buffers[b].bytes; });
    step->bytes += made;
    return made == 0 || !over_cap(begun, step->beside, made, step->bytes);
  }

  /// Some of `among`, each two of which may be live at once, are over the cap together with `have`.
  /// `all`: `have` and the bytes of all of `among`.
  bool over_cap(const Beginning& begun, uint64_t among, int64_t have, int64_t all) const {
    if (have > goal_.cap) return true;
    for (; among != 0 && all > goal_.cap; among &= among - 1) {
      const auto first = static_cast<uint32_t>(std::countr_zero(among));
      const uint64_t with = among & begun.beside[first];
      const int64_t bytes = graph_.buffers[first].bytes;
      int64_t rest = 0;
      each_bit(with, [&](uint32_t b) { rest += graph_.buffers[b].bytes; });
      if (over_cap(begun, with, have + bytes, have + bytes + rest)) return true;
      all -= bytes;
    }
    return false;
  }

  Beginning grown(const Beginning& begun, const Step& step) const {
    Beginning next = begun;
    next.order[next.placed++] = static_cast<uint8_t>(step.task);
    next.lane[step.task] = static_cast<uint8_t>(step.lane);
    next.done |= bit(step.task);
    if (!graph_.on_link(step.task)) next.used = std::max(next.used, step.lane + 1);
    next.last_start = step.start;
    next.bytes = step.bytes;
    next.last = step.task;
    next.tail[step.lane] = step.task;
    next.past[step.task] = step.past;
    next.free[step.lane] = next.end[step.task] = step.start + graph_.cost[step.task];
    next.makespan = std::max(next.makespan, next.end[step.task]);
    const uint64_t made = makes_[step.task];
    each_bit(made, [&](uint32_t b) { next.beside[b] = step.beside | (made & ~bit(b)); });
    each_bit(step.beside, [&](uint32_t b) { next.beside[b] |= made; });
    next.made |= made;
    return next;
  }

  static constexpr uint32_t kForever = 63;  // a user that never ends

  const TaskGraph& graph_;
  BeamGoal goal_;
  std::array<uint64_t, kTasks> deps_ = {};
  std::array<uint64_t, kTasks> makes_ = {};
  std::array<uint64_t, kBuffers> users_ = {};
};

}  // namespace

bool fits_beam(const TaskGraph& graph) {
  const auto frees = [](int64_t bytes) { return bytes != 0; };
  return graph.size() <= kTasks && graph.buffers.size() <= kBuffers && graph.lanes <= kLanes &&
         std::none_of(graph.freed.begin(), graph.freed.end(), frees);
}

BeamAnswer beam_order(const TaskGraph& graph, const BeamGoal& goal, size_t width, int64_t* nodes) {
  return Beam(graph, goal).run(width, nodes);
}

}  // namespace ooo
