// SPDX-License-Identifier: Apache-2.0
// An order checked, lanes, and the fewest waits: see schedule.hpp.
#include "core/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gradrack {

namespace {

Status check_order(const TaskTable& table, const std::vector<uint32_t>& order,
                   const std::vector<uint32_t>& stream, uint32_t streams) {
  const size_t count = table.tasks.size();
  constexpr uint32_t kUnset = ~0u;
  std::vector<uint32_t> position(count, kUnset);
  if (order.size() != count || stream.size() != count) {
    return invalid_argument(fmt::format("orders {} of {} tasks", order.size(), count));
  }
  for (uint32_t k = 0; k < count; ++k) {
    const uint32_t task = order[k];
    if (task >= count) {
      return invalid_argument(fmt::format("entry {} is task {}, there are {}", k, task, count));
    }
    if (position[task] != kUnset) {
      return invalid_argument(fmt::format("task {} ({}) is ordered twice, so another is missing",
                                          task, table.tasks[task].name));
    }
    position[task] = k;
    if (stream[task] >= streams) {
      return invalid_argument(
          fmt::format("task {} is on stream {}, there are {}", task, stream[task], streams));
    }
  }
  for (uint32_t task = 0; task < count; ++task) {
    for (const uint32_t dep : table.tasks[task].deps) {
      if (position[dep] > position[task]) {
        return invalid_argument(fmt::format("task {} ({}) comes before task {} ({}) that it needs",
                                            task, table.tasks[task].name, dep,
                                            table.tasks[dep].name));
      }
    }
  }
  return {};
}

void assign_lanes(const TaskTable& table, const std::vector<uint32_t>& stream, Schedule* out) {
  std::map<std::pair<int32_t, uint32_t>, uint32_t> lanes;
  out->lane.resize(table.tasks.size());
  for (const uint32_t task : out->order) {
    const std::pair<int32_t, uint32_t> key = {table.tasks[task].device, stream[task]};
    const auto [at, made] = lanes.emplace(key, static_cast<uint32_t>(out->lanes.size()));
    if (made) out->lanes.push_back({key.first, key.second});
    out->lane[task] = at->second;
  }
}

/// Walks the order with a clock per lane. A task's candidates are the latest dependency of each
/// other lane that its lane has not seen; one that another candidate has already seen needs no
/// wait.
class WaitInserter {
 public:
  WaitInserter(const TaskTable& table, Schedule* schedule)
      : table_(table),
        schedule_(*schedule),
        lanes_(std::max<size_t>(1, schedule->lanes.size())),
        now_(lanes_ * lanes_, 0),
        start_(table.tasks.size() * lanes_, 0),
        place_(table.tasks.size(), 0) {}

  void run() {
    for (const uint32_t task : schedule_.order) {
      const uint32_t lane = schedule_.lane[task];
      uint32_t* const clock = &now_[lane * lanes_];
      for (const uint32_t on : needed(task)) {
        schedule_.waits.push_back({task, on});
        const uint32_t* const other = &start_[on * lanes_];
        for (size_t k = 0; k < lanes_; ++k) clock[k] = std::max(clock[k], other[k]);
        const uint32_t on_lane = schedule_.lane[on];
        clock[on_lane] = std::max(clock[on_lane], place_[on] + 1);
      }
      place_[task] = clock[lane];
      std::copy(clock, clock + lanes_, &start_[task * lanes_]);
      ++clock[lane];
    }
  }

 private:
  std::vector<uint32_t> needed(uint32_t task) const {
    constexpr uint32_t kNone = ~0u;
    const uint32_t own = schedule_.lane[task];
    const uint32_t* const clock = &now_[own * lanes_];
    std::vector<uint32_t> latest(lanes_, kNone);
    for (const uint32_t dep : table_.tasks[task].deps) {
      const uint32_t lane = schedule_.lane[dep];
      if (lane == own || clock[lane] > place_[dep]) continue;
      if (latest[lane] == kNone || place_[latest[lane]] < place_[dep]) latest[lane] = dep;
    }
    std::vector<uint32_t> out;
    for (size_t lane = 0; lane < lanes_; ++lane) {
      const uint32_t dep = latest[lane];
      if (dep == kNone) continue;
      const bool covered = std::any_of(latest.begin(), latest.end(), [&](uint32_t other) {
        return other != kNone && other != dep && start_[other * lanes_ + lane] > place_[dep];
      });
      if (!covered) out.push_back(dep);
    }
    return out;
  }

  const TaskTable& table_;
  Schedule& schedule_;
  size_t lanes_;
  std::vector<uint32_t> now_;
  std::vector<uint32_t> start_;
  std::vector<uint32_t> place_;
};

Schedule build(const TaskTable& table, const std::vector<uint32_t>& order,
               const std::vector<uint32_t>& stream) {
  Schedule out;
  out.order = order;
  assign_lanes(table, stream, &out);
  WaitInserter(table, &out).run();
  return out;
}

}  // namespace

TaskRequest::TaskRequest(const TaskTable& table, uint32_t streams, int64_t memory_limit) {
  for (const Task& task : table.tasks) {
    tasks_.push_back({task.kind, task.stage, task.cost_ns, task.bytes_held, task.bytes_freed,
                      task.deps.data(), static_cast<uint32_t>(task.deps.size()), 0});
  }
  for (const std::string& stage : table.stages) stages_.push_back(stage.c_str());
  for (const TaskBuffer& buffer : table.buffers) {
    buffers_.push_back({buffer.bytes, buffer.users.data(),
                        static_cast<uint32_t>(buffer.users.size()),
                        buffer.kept ? uint32_t{GR_BUFFER_KEPT} : 0u});
  }
  request_.struct_size = sizeof request_;
  request_.task_stride = sizeof(gr_task_t);
  request_.tasks = tasks_.data();
  request_.task_count = static_cast<uint32_t>(tasks_.size());
  request_.stage_count = static_cast<uint32_t>(stages_.size());
  request_.stage_names = stages_.data();
  request_.streams = streams;
  request_.memory_limit = memory_limit;
  request_.buffers = buffers_.data();
  request_.buffer_count = static_cast<uint32_t>(buffers_.size());
  request_.buffer_stride = sizeof(gr_task_buffer_t);
  request_.wait_ns = table.wait_ns;
}

Schedule program_order(const TaskTable& table) {
  std::vector<uint32_t> order(table.tasks.size());
  for (uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  Schedule out = build(table, order, std::vector<uint32_t>(order.size(), 0));
  out.scheduler = "program order";
  return out;
}

bool is_program_order(const Schedule& schedule) {
  const auto first = [](const Lane& lane) { return lane.stream == 0; };
  return std::is_sorted(schedule.order.begin(), schedule.order.end()) &&
         std::all_of(schedule.lanes.begin(), schedule.lanes.end(), first);
}

Result<Schedule> schedule_from(const TaskTable& table, const std::vector<uint32_t>& order,
                               const std::vector<uint32_t>& stream, uint32_t streams) {
  GR_TRY(check_order(table, order, stream, streams));
  return build(table, order, stream);
}

}  // namespace gradrack
