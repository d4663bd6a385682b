// SPDX-License-Identifier: Apache-2.0
// Rows of streams and links: see sim_timeline.hpp.
#include "core/simulate/sim_timeline.hpp"

#include <algorithm>
#include <map>

namespace gradrack {
namespace {

TimelineSpan span_of(const SimTable& table, const Simulation& simulation, uint32_t index) {
  const Task& task = table.tasks.tasks[index];
  TimelineSpan span;
  span.start_ns = simulation.start_ns[index];
  span.end_ns = simulation.end_ns[index];
  span.kind = task.kind;
  span.name = task.name;
  if (task.stage >= 0) span.stage = table.tasks.stages[static_cast<size_t>(task.stage)];
  span.microbatch = table.more[index].microbatch;
  return span;
}

}  // namespace

Timeline timeline_of(const SimTable& table, const Schedule& schedule,
                     const Simulation& simulation) {
  // By device and stream, links behind devices. However many streams a scheduler names for a link,
  // it is one row.
  std::map<std::pair<int32_t, uint32_t>, TimelineRow> rows;
  std::vector<TimelineRow*> row_of_lane;
  for (const Lane& lane : schedule.lanes) {
    const auto index = static_cast<size_t>(lane.device);
    const bool link = index >= table.devices.size();
    TimelineRow& row = rows[{lane.device, link ? 0 : lane.stream}];
    row.name = link ? "link " + table.links[index - table.devices.size()].name
                    : stream_name(table.devices[index].name, lane.stream);
    row_of_lane.push_back(&row);
  }
  for (const uint32_t task : schedule.order) {
    row_of_lane[schedule.lane[task]]->spans.push_back(span_of(table, simulation, task));
  }
  Timeline out = {"gradrack simulate", {}, simulation.makespan_ns};
  for (auto& [place, row] : rows) {
    std::stable_sort(
        row.spans.begin(), row.spans.end(),
        [](const TimelineSpan& a, const TimelineSpan& b) { return a.start_ns < b.start_ns; });
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace gradrack
