// SPDX-License-Identifier: Apache-2.0
// HappensBefore and its proof: see happens_before.hpp.
#include "core/schedule/happens_before.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {

HappensBefore::HappensBefore(const Schedule& schedule) {
  const size_t count = schedule.order.size();
  lanes_ = std::max<size_t>(1, schedule.lanes.size());
  lane_ = schedule.lane;
  place_.resize(count);
  clocks_.assign(count * lanes_, 0);
  std::vector<std::vector<uint32_t>> waits(count);
  for (const Wait& wait : schedule.waits) waits[wait.task].push_back(wait.on);

  std::vector<uint32_t> now(lanes_ * lanes_, 0);  // clock of each lane's tail
  std::vector<bool> seen(count, false);
  for (const uint32_t task : schedule.order) {
    uint32_t* const clock = &now[lane_[task] * lanes_];
    for (const uint32_t on : waits[task]) {
      if (!seen[on]) continue;  // an event that is not recorded yet orders nothing
      const uint32_t* const other = started(on);
      for (size_t k = 0; k < lanes_; ++k) clock[k] = std::max(clock[k], other[k]);
      clock[lane_[on]] = std::max(clock[lane_[on]], place_[on] + 1);
    }
    place_[task] = clock[lane_[task]];
    std::copy(clock, clock + lanes_, clocks_.begin() + static_cast<std::ptrdiff_t>(task * lanes_));
    ++clock[lane_[task]];
    seen[task] = true;
  }
}

namespace {

std::string race_text(const TaskTable& table, uint32_t a, uint32_t b, std::string_view about) {
  return fmt::format("task {} ({}) and task {} ({}) are not ordered: {}", a, table.tasks[a].name, b,
                     table.tasks[b].name, about);
}

}  // namespace

Status check_happens_before(const TaskTable& table, const Schedule& schedule,
                            const std::vector<Access>& accesses) {
  const HappensBefore before(schedule);
  for (uint32_t task = 0; task < table.tasks.size(); ++task) {
    for (const uint32_t dep : table.tasks[task].deps) {
      if (!before(dep, task)) return internal_error(race_text(table, dep, task, "a dependency"));
    }
  }
  std::vector<Access> sorted = accesses;
  std::sort(sorted.begin(), sorted.end(), [](const Access& a, const Access& b) {
    return a.space != b.space ? a.space < b.space : a.offset < b.offset;
  });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Access& a = sorted[i];
    for (size_t j = i + 1; j < sorted.size(); ++j) {
      const Access& b = sorted[j];
      if (b.space != a.space || b.offset >= a.offset + a.bytes) break;
      if (a.task == b.task || !(a.write || b.write) || b.bytes == 0) continue;
      if (!before(a.task, b.task) && !before(b.task, a.task)) {
        return internal_error(
            race_text(table, a.task, b.task,
                      fmt::format("both use bytes {} to {} of space {}", b.offset,
                                  std::min(a.offset + a.bytes, b.offset + b.bytes), a.space)));
      }
    }
  }
  return {};
}

}  // namespace gradrack
