// SPDX-License-Identifier: Apache-2.0
// HappensBefore and its proof: see happens_before.hpp.
#include "core/schedule/happens_before.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

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

constexpr uint32_t kNobody = ~0u;

std::string race_text(const TaskTable& table, uint32_t a, uint32_t b, std::string_view about) {
  return fmt::format("task {} ({}) and task {} ({}) are not ordered: {}", a, table.tasks[a].name, b,
                     table.tasks[b].name, about);
}

/// Who used bytes since they were last written: by transitivity, whoever follows the last writer
/// and all readers since, follows all users before them too; and of a lane's readers the last
/// counts.
struct Users {
  uint32_t writer = kNobody;
  std::vector<uint32_t> readers;  // at most one a lane
};

/// The bytes of one space, cut where their users differ. Accesses come in schedule order.
class SpaceSweep {
 public:
  SpaceSweep(const TaskTable& table, const HappensBefore& before)
      : table_(table), before_(before) {}

  Status add(const Access& access) {
    const int64_t end = access.offset + access.bytes;
    const auto first = cut(access.offset), last = cut(end);
    for (auto at = first; at != last; ++at) {
      Users& users = at->second;
      GR_TRY(check(users.writer, access, at));
      if (!access.write) {
        add_reader(access.task, &users);
        continue;
      }
      for (const uint32_t reader : users.readers) GR_TRY(check(reader, access, at));
    }
    if (!access.write || first == last) return {};
    spans_.erase(std::next(first), last);
    first->second = {access.task, {}};
    return {};
  }

 private:
  using Spans = std::map<int64_t, Users>;  // by first byte; each ends where the next begins

  /// The span that begins at `byte`.
  Spans::iterator cut(int64_t byte) {
    const auto next = spans_.upper_bound(byte);
    const auto at = std::prev(next);
    return at->first == byte ? at : spans_.emplace_hint(next, byte, at->second);
  }

  void add_reader(uint32_t task, Users* users) const {
    for (uint32_t& reader : users->readers) {
      if (before_.lane(reader) != before_.lane(task)) continue;
      reader = task;
      return;
    }
    users->readers.push_back(task);
  }

  Status check(uint32_t user, const Access& access, Spans::iterator at) const {
    if (user == kNobody || user == access.task || before_(user, access.task)) return {};
    return internal_error(race_text(table_, user, access.task,
                                    fmt::format("both use bytes {} to {} of space {}", at->first,
                                                std::next(at)->first, access.space)));
  }

  const TaskTable& table_;
  const HappensBefore& before_;
  Spans spans_ = {{INT64_MIN, {}}};
};

Status check_accesses(const TaskTable& table, const Schedule& schedule, const HappensBefore& before,
                      const std::vector<Access>& accesses) {
  std::vector<uint32_t> position(schedule.order.size());
  for (uint32_t k = 0; k < position.size(); ++k) position[schedule.order[k]] = k;
  std::vector<const Access*> sorted;
  for (const Access& access : accesses) {
    if (access.bytes > 0) sorted.push_back(&access);
  }
  std::sort(sorted.begin(), sorted.end(), [&](const Access* a, const Access* b) {
    return a->space != b->space ? a->space < b->space : position[a->task] < position[b->task];
  });
  for (size_t k = 0; k < sorted.size();) {
    SpaceSweep sweep(table, before);
    const int32_t space = sorted[k]->space;
    for (; k < sorted.size() && sorted[k]->space == space; ++k) GR_TRY(sweep.add(*sorted[k]));
  }
  return {};
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
  return check_accesses(table, schedule, before, accesses);
}

}  // namespace gradrack
