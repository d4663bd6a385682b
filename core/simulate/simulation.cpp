// SPDX-License-Identifier: Apache-2.0
// The event loop: see simulation.hpp.
#include "core/simulate/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "core/simulate/measure.hpp"

namespace gradrack {
namespace {

/// One moment at a time: first everything that ends then, after that everything that can start.
class EventLoop {
 public:
  EventLoop(const SimTable& table, const Schedule& schedule)
      : table_(table),
        schedule_(schedule),
        waits_for_(table.size()),
        followers_(table.size()),
        readers_(table.size(), 0),
        place_(table.size()),
        lanes_(schedule.lanes.size()),
        links_(table.links.size()),
        live_(table.devices.size(), 0) {
    out_.start_ns.assign(table.size(), -1);
    out_.end_ns.assign(table.size(), -1);
    out_.devices.resize(table.devices.size());
    out_.links.resize(table.links.size());
    for (uint32_t place = 0; place < schedule.order.size(); ++place) {
      const uint32_t task = schedule.order[place];
      place_[task] = place;
      if (!table.is_transfer(task)) lanes_[schedule.lane[task]].tasks.push_back(task);
    }
    for (uint32_t task = 0; task < table.size(); ++task) {
      waits_for_[task] = static_cast<uint32_t>(table.tasks.tasks[task].deps.size());
      for (const uint32_t dep : table.tasks.tasks[task].deps) followers_[dep].push_back(task);
      for (const uint32_t read : table.more[task].reads) ++readers_[read];
    }
  }

  Result<Simulation> run() {
    for (uint32_t task = 0; task < table_.size(); ++task) {
      if (waits_for_[task] == 0) make_ready(task);
    }
    start_all();
    while (!events_.empty()) {
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      start_all();
    }
    for (uint32_t task = 0; task < table_.size(); ++task) {
      if (out_.end_ns[task] >= 0) continue;
      return invalid_argument(fmt::format("task '{}' never starts: streams wait for each other",
                                          table_.tasks.tasks[task].name));
    }
    return std::move(out_);
  }

 private:
  enum Kind { kTaskEnds, kLinkFree, kArrives };
  struct Event {
    int64_t time;
    int32_t kind;
    uint32_t task;
    uint64_t turn;  // of kLinkFree: void when the link has been taken away since
    bool operator<(const Event& o) const {  // the heap gives the largest first
      if (time != o.time) return time > o.time;
      if (task != o.task) return task > o.task;
      return kind > o.kind;
    }
  };
  struct LaneState {
    std::vector<uint32_t> tasks;
    size_t next = 0;
    bool busy = false;
  };
  using Rank = std::pair<int64_t, uint32_t>;
  struct LinkState {
    std::set<std::pair<Rank, uint32_t>> waiting;  // smallest first
    bool busy = false;
    uint32_t task = 0;
    int64_t since = 0;
    uint64_t turn = 0;
    std::map<uint32_t, int64_t> left;  // of transfers that were interrupted
  };

  void handle(const Event& event) {
    if (event.kind == kTaskEnds) {
      lanes_[schedule_.lane[event.task]].busy = false;
    } else if (event.kind == kLinkFree) {
      const size_t index = table_.link_of(event.task);
      if (!links_[index].busy || links_[index].turn != event.turn) return;
      links_[index].busy = false;
      const int64_t latency = table_.links[index].latency_ns;
      if (latency > 0) return events_.push({now_ + latency, kArrives, event.task, 0});
    }
    finish(event.task);
  }

  void finish(uint32_t task) {
    out_.end_ns[task] = now_;
    release(task);
    for (const uint32_t next : followers_[task]) {
      if (--waits_for_[next] == 0) make_ready(next);
    }
  }

  void make_ready(uint32_t task) {
    if (table_.is_transfer(task)) links_[table_.link_of(task)].waiting.insert({rank(task), task});
  }

  Rank rank(uint32_t task) const {
    if (table_.links[table_.link_of(task)].policy == LinkPolicy::kFifo) return {now_, place_[task]};
    const int64_t priority = table_.more[task].priority;
    return {priority >= 0 ? priority : place_[task], place_[task]};
  }

  void start_all() {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) start_lane(lane);
    for (size_t link = 0; link < links_.size(); ++link) start_link(link);
  }

  void start_lane(size_t index) {
    LaneState& lane = lanes_[index];
    if (lane.busy || lane.next == lane.tasks.size()) return;
    const uint32_t task = lane.tasks[lane.next];
    if (waits_for_[task] != 0) return;
    const int64_t cost = table_.tasks.tasks[task].cost_ns;
    lane.busy = true;
    ++lane.next;
    out_.start_ns[task] = now_;
    hold(task);
    events_.push({now_ + cost, kTaskEnds, task, 0});
  }

  void start_link(size_t index) {
    LinkState& link = links_[index];
    if (link.waiting.empty()) return;
    const auto [best_rank, task] = *link.waiting.begin();
    if (link.busy) {
      if (table_.links[index].policy != LinkPolicy::kPreemptive || rank(link.task) <= best_rank) {
        return;
      }
      int64_t& left =
          link.left.emplace(link.task, table_.tasks.tasks[link.task].cost_ns).first->second;
      left -= now_ - link.since;
      link.waiting.insert({rank(link.task), link.task});
    }
    link.waiting.erase({best_rank, task});
    const auto at = link.left.find(task);
    const int64_t left = at != link.left.end() ? at->second : table_.tasks.tasks[task].cost_ns;
    link.busy = true;
    link.task = task;
    link.since = now_;
    if (out_.start_ns[task] < 0) out_.start_ns[task] = now_;
    events_.push({now_ + left, kLinkFree, task, ++link.turn});
  }

  void hold(uint32_t task) {
    const auto device = static_cast<size_t>(table_.tasks.tasks[task].device);
    live_[device] += table_.tasks.tasks[task].bytes_held;
    out_.devices[device].peak_bytes = std::max(out_.devices[device].peak_bytes, live_[device]);
  }

  void release(uint32_t task) {
    if (!table_.is_transfer(task)) {
      live_[static_cast<size_t>(table_.tasks.tasks[task].device)] -= table_.more[task].bytes_freed;
    }
    for (const uint32_t read : table_.more[task].reads) {
      if (--readers_[read] > 0 || table_.is_transfer(read)) continue;
      const Task& made = table_.tasks.tasks[read];
      live_[static_cast<size_t>(made.device)] -= made.bytes_held;
    }
  }

  const SimTable& table_;
  const Schedule& schedule_;
  std::vector<uint32_t> waits_for_;
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<uint32_t> readers_;
  std::vector<uint32_t> place_;
  std::vector<LaneState> lanes_;
  std::vector<LinkState> links_;
  std::vector<int64_t> live_;
  std::priority_queue<Event> events_;
  int64_t now_ = 0;
  Simulation out_;
};

}  // namespace

Result<Simulation> simulate(const SimTable& table, const Schedule& schedule) {
  GR_ASSIGN(Simulation out, EventLoop(table, schedule).run());
  measure(table, schedule, &out);
  return out;
}

}  // namespace gradrack
