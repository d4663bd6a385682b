// SPDX-License-Identifier: Apache-2.0
// Walking lanes in pairs: see peak.hpp.
#include "peak.hpp"

#include <algorithm>

namespace ooo {

namespace {

/// Numbers along a lane; adds to ranges, asks for the largest of a range.
class RangeMax {
 public:
  explicit RangeMax(uint32_t size) {
    while (leaves_ < size) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
  }

  void add(uint32_t first, uint32_t end, int64_t bytes) {
    if (first < end) add(1, 0, leaves_, first, end, bytes);
  }
  int64_t most(uint32_t first, uint32_t end) const { return most(1, 0, leaves_, first, end); }

 private:
  void add(uint32_t node, uint32_t from, uint32_t to, uint32_t first, uint32_t end, int64_t bytes) {
    if (first <= from && to <= end) {
      nodes_[node].most += bytes;
      nodes_[node].added += bytes;
      return;
    }
    const uint32_t middle = (from + to) / 2;
    if (first < middle) add(2 * node, from, middle, first, end, bytes);
    if (end > middle) add(2 * node + 1, middle, to, first, end, bytes);
    nodes_[node].most =
        std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
  }
  int64_t most(uint32_t node, uint32_t from, uint32_t to, uint32_t first, uint32_t end) const {
    if (first <= from && to <= end) return nodes_[node].most;
    const uint32_t middle = (from + to) / 2;
    int64_t found = 0;
    if (first < middle) found = most(2 * node, from, middle, first, end);
    if (end > middle) found = std::max(found, most(2 * node + 1, middle, to, first, end));
    return found + nodes_[node].added;
  }

  struct Node {
    int64_t most = 0;   // of its range, with what was added to it as a whole
    int64_t added = 0;  // to all of its range
  };
  uint32_t leaves_ = 1;
  std::vector<Node> nodes_;  // the children of k are 2k and 2k + 1
};

/// Rows of tasks by lane, and what each has surely seen end when it starts.
class Rows {
 public:
  Rows(const TaskGraph& graph, const Plan& plan)
      : graph_(graph),
        lane_(plan.lane),
        lanes_(graph.lanes),
        rows_(lanes_),
        place_(graph.size()),
        seen_(graph.size() * lanes_),
        placed_(graph.size() * lanes_),
        first_(graph.size() * lanes_),
        freed_(graph.size()) {
    std::vector<uint32_t> now(lanes_ * lanes_, 0);
    for (const uint32_t task : plan.order) add(task, &now[lane_[task] * lanes_]);
    for (size_t lane = 0; lane < lanes_; ++lane) {
      for (size_t other = 0; other < lanes_; ++other) find_first(lane, rows_[other]);
    }
  }

  const std::vector<uint32_t>& row(size_t lane) const { return rows_[lane]; }
  uint32_t length(size_t lane) const { return static_cast<uint32_t>(rows_[lane].size()); }
  uint32_t lane(uint32_t task) const { return lane_[task]; }
  uint32_t place(uint32_t task) const { return place_[task]; }
  /// Tasks of a lane that have surely ended when `task` starts.
  uint32_t seen(uint32_t task, size_t lane) const { return seen_[task * lanes_ + lane]; }
  /// Tasks of a lane that come before `task` in the order.
  uint32_t placed(uint32_t task, size_t lane) const { return placed_[task * lanes_ + lane]; }
  /// Place of the first task of `lane` that has seen `task` end; its length where none has.
  uint32_t first_after(uint32_t task, size_t lane) const { return first_[task * lanes_ + lane]; }
  /// TaskGraph::freed of the first `ended` tasks of a lane.
  int64_t freed(size_t lane, uint32_t ended) const {
    return ended == 0 ? 0 : freed_[rows_[lane][ended - 1]];
  }

 private:
  void add(uint32_t task, uint32_t* clock) {
    const uint32_t lane = lane_[task];
    for (const uint32_t dep : graph_.deps[task]) {
      for (size_t k = 0; k < lanes_; ++k) clock[k] = std::max(clock[k], seen(dep, k));
      clock[lane_[dep]] = std::max(clock[lane_[dep]], place_[dep] + 1);
    }
    for (size_t k = 0; k < lanes_; ++k) {
      seen_[task * lanes_ + k] = clock[k];
      placed_[task * lanes_ + k] = length(k);
    }
    place_[task] = length(lane);
    freed_[task] = freed(lane, length(lane)) + graph_.freed[task];
    rows_[lane].push_back(task);
    ++clock[lane];
  }

  void find_first(size_t lane, const std::vector<uint32_t>& others) {
    uint32_t first = 0;
    for (const uint32_t other : others) {
      while (first < length(lane) && seen(rows_[lane][first], lane_[other]) <= place_[other]) {
        ++first;
      }
      first_[other * lanes_ + lane] = first;
    }
  }

  const TaskGraph& graph_;
  const std::vector<uint32_t>& lane_;
  size_t lanes_;
  std::vector<std::vector<uint32_t>> rows_;
  std::vector<uint32_t> place_;
  std::vector<uint32_t> seen_;    // [task][lane]
  std::vector<uint32_t> placed_;  // [task][lane]
  std::vector<uint32_t> first_;   // [task][lane]
  std::vector<int64_t> freed_;    // [task]: by its row up to its end
};

/// What one lane sees as it walks its row. Places of another lane are counted in halves: 2p is
/// before its task p starts, 2p + 1 while that runs.
class LaneWalk {
 public:
  LaneWalk(const TaskGraph& graph, const Rows& rows, uint32_t lane)
      : graph_(graph), rows_(rows), lane_(lane), last_(rows.length(lane) + 1, kNone) {
    for (uint32_t k = 0; k < graph.lanes; ++k) {
      others_.emplace_back(k == lane ? 1 : 2 * rows.length(k) + 1);
    }
    events_.reserve(2 * graph.buffers.size());
    for (const Buffer& buffer : graph.buffers) add_buffer(buffer);
  }

  int64_t peak() {
    int64_t peak = 0, own = 0;
    for (uint32_t p = 0; p < rows_.length(lane_); ++p) {
      for (uint32_t k = last_[p]; k != kNone; k = events_[k].before) {
        const Event& event = events_[k];
        if (event.other == lane_) own += event.bytes;
        if (event.other != lane_) others_[event.other].add(event.first, event.end, event.bytes);
      }
      const uint32_t task = rows_.row(lane_)[p];
      int64_t live = own - rows_.freed(lane_, p);
      for (uint32_t k = 0; k < graph_.lanes; ++k) {
        if (k == lane_) continue;
        const uint32_t seen = rows_.seen(task, k);
        live += others_[k].most(2 * seen, 2 * rows_.placed(task, k) + 1) - rows_.freed(k, seen);
      }
      peak = std::max(peak, live);
    }
    return peak;
  }

 private:
  /// Bytes that come into view or go, at places [first, end) of lane `other`.
  struct Event {
    uint32_t other;
    uint32_t first;
    uint32_t end;
    int64_t bytes;
    uint32_t before;  // the event added before at the same place
  };

  void add_event(uint32_t place, Event event) {
    event.before = last_[place];
    last_[place] = static_cast<uint32_t>(events_.size());
    events_.push_back(event);
  }

  void add_buffer(const Buffer& buffer) {
    const uint32_t maker = buffer.users.front(), other = project(buffer);
    Event come = {other, 0, 0, buffer.bytes, kNone};
    if (other != lane_) {
      const bool made_there = rows_.lane(maker) == other;
      come.first = made_there ? 2 * rows_.place(maker) + 1 : 2 * rows_.seen(maker, other);
      come.end = end_on(buffer, other);
    }
    const bool mine = rows_.lane(maker) == lane_;
    add_event(mine ? rows_.place(maker) : 0, come);
    if (buffer.kept) return;
    come.bytes = -come.bytes;
    add_event(first_after_all(buffer, lane_), come);
  }

  /// The other lane on which the buffer is looked up: where it is made or used; this one if it is
  /// of this alone.
  uint32_t project(const Buffer& buffer) const {
    if (rows_.lane(buffer.users.front()) != lane_) return rows_.lane(buffer.users.front());
    for (auto user = buffer.users.rbegin(); user != buffer.users.rend(); ++user) {
      if (rows_.lane(*user) != lane_) return rows_.lane(*user);
    }
    return lane_;
  }

  uint32_t first_after_all(const Buffer& buffer, uint32_t lane) const {
    uint32_t first = 0;
    for (const uint32_t user : buffer.users) first = std::max(first, rows_.first_after(user, lane));
    return first;
  }

  uint32_t end_on(const Buffer& buffer, uint32_t lane) const {
    if (buffer.kept) return 2 * rows_.length(lane) + 1;
    const uint32_t first = first_after_all(buffer, lane);
    const bool there_alone = std::all_of(buffer.users.begin(), buffer.users.end(),
                                         [&](uint32_t user) { return rows_.lane(user) == lane; });
    return 2 * first + (there_alone ? 0 : 1);
  }

  const TaskGraph& graph_;
  const Rows& rows_;
  uint32_t lane_;
  std::vector<uint32_t> last_;  // event before each place of this lane: the one added last
  std::vector<Event> events_;
  std::vector<RangeMax> others_;  // by lane
};

}  // namespace

int64_t peak_bytes(const TaskGraph& graph, const Plan& plan) {
  const Rows rows(graph, plan);
  int64_t peak = 0;
  for (uint32_t lane = 0; lane < graph.lanes; ++lane) {
    if (rows.length(lane) > 0) peak = std::max(peak, LaneWalk(graph, rows, lane).peak());
  }
  return peak;
}

}  // namespace ooo
