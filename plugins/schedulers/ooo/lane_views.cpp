// SPDX-License-Identifier: Apache-2.0
// Clocks and live bytes of lanes: see lane_views.hpp.
#include "lane_views.hpp"

#include <algorithm>

namespace ooo {

LaneViews::LaneViews(const TaskGraph& graph)
    : graph_(graph),
      lanes_(graph.lanes),
      rows_(lanes_),
      lane_(graph.size(), 0),
      place_(graph.size(), 0),
      seen_(lanes_ * lanes_, 0),
      start_(graph.size() * lanes_, 0),
      left_(lanes_ * graph.buffers.size()),
      live_(lanes_, 0),
      before_(lanes_),
      patience_(int64_t{kPatience} * graph.size()) {
  for (size_t k = 0; k < left_.size(); ++k) {
    left_[k] = static_cast<uint32_t>(graph.buffers[k % graph.buffers.size()].users.size());
  }
}

int64_t LaneViews::place(uint32_t task, uint32_t lane) {
  meet_deps(task, lane);
  std::copy_n(&seen_[lane * lanes_], lanes_, &start_[task * lanes_]);
  const int64_t bytes = made(task);
  for (int64_t& live : live_) live += bytes;
  const int64_t live = live_[lane];
  lane_[task] = lane;
  place_[task] = static_cast<uint32_t>(rows_[lane].size());
  rows_[lane].push_back(task);
  see(lane, lane, place_[task] + 1);
  return live;
}

int64_t LaneViews::peek(uint32_t task, uint32_t lane, int64_t enough) {
  const int64_t before = live_[lane] + made(task);
  if (before <= enough || patience_ <= 0) return before;
  std::copy_n(&seen_[lane * lanes_], lanes_, before_.begin());
  meet_deps(task, lane);
  const int64_t live = live_[lane] + made(task);
  for (size_t other = 0; other < lanes_; ++other) {
    uint32_t& seen = seen_[lane * lanes_ + other];
    patience_ -= seen - before_[other];
    while (seen > before_[other]) take_back(lane, rows_[other][--seen]);
  }
  return live;
}

int64_t LaneViews::made(uint32_t task) const {
  int64_t bytes = 0;
  for (const uint32_t buffer : graph_.uses[task]) {
    const Buffer& each = graph_.buffers[buffer];
    if (each.users.front() == task) bytes += each.bytes;
  }
  return bytes;
}

void LaneViews::meet_deps(uint32_t task, uint32_t lane) {
  for (const uint32_t dep : graph_.deps[task]) {
    const uint32_t on = lane_[dep];
    if (seen_[lane * lanes_ + on] > place_[dep]) continue;
    for (uint32_t other = 0; other < lanes_; ++other) {
      see(lane, other, start_[dep * lanes_ + other]);
    }
    see(lane, on, place_[dep] + 1);
  }
}

void LaneViews::see(uint32_t lane, uint32_t other, uint32_t end) {
  uint32_t& seen = seen_[lane * lanes_ + other];
  while (seen < end) see_end(lane, rows_[other][seen++]);
}

void LaneViews::see_end(uint32_t lane, uint32_t task) {
  live_[lane] -= graph_.freed[task];
  for (const uint32_t buffer : graph_.uses[task]) {
    if (--left_[lane * graph_.buffers.size() + buffer] > 0) continue;
    if (!graph_.buffers[buffer].kept) live_[lane] -= graph_.buffers[buffer].bytes;
  }
}

void LaneViews::take_back(uint32_t lane, uint32_t task) {
  live_[lane] += graph_.freed[task];
  for (const uint32_t buffer : graph_.uses[task]) {
    if (left_[lane * graph_.buffers.size() + buffer]++ > 0) continue;
    if (!graph_.buffers[buffer].kept) live_[lane] += graph_.buffers[buffer].bytes;
  }
}

}  // namespace ooo
