// SPDX-License-Identifier: Apache-2.0
// Rows and lines of text: see timeline.hpp.
#include "core/simulate/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {
namespace {

char letter_of(int32_t kind) {
  constexpr char kLetters[] = "FXWURC";
  return kind >= 0 && kind < 6 ? kLetters[kind] : '#';
}

std::string device_row_name(const SimTable& table, const Lane& lane) {
  const std::string& name = table.devices[static_cast<size_t>(lane.device)].name;
  return lane.stream == 0 ? name : fmt::format("{}.{}", name, lane.stream);
}

std::string row_line(const SimTable& table, const Simulation& simulation, const TimelineRow& row,
                     size_t columns) {
  std::string line(columns, '.');
  size_t at = 0;
  for (size_t column = 0; column < columns; ++column) {
    const auto middle = static_cast<int64_t>((static_cast<double>(column) + 0.5) *
                                             static_cast<double>(simulation.makespan_ns) /
                                             static_cast<double>(columns));
    while (at < row.tasks.size() && simulation.end_ns[row.tasks[at]] <= middle) ++at;
    if (at == row.tasks.size()) break;
    if (simulation.start_ns[row.tasks[at]] > middle) continue;
    line[column] = letter_of(table.tasks.tasks[row.tasks[at]].kind);
  }
  return line;
}

}  // namespace

std::vector<TimelineRow> timeline_rows(const SimTable& table, const Schedule& schedule,
                                       const Simulation& simulation) {
  struct Numbered {
    std::pair<int32_t, uint32_t> place;
    TimelineRow row;
  };
  std::vector<Numbered> lanes;
  std::vector<size_t> row_of_lane;
  for (const Lane& lane : schedule.lanes) {
    const bool link = static_cast<size_t>(lane.device) >= table.devices.size();
    const size_t index = static_cast<size_t>(lane.device) - (link ? table.devices.size() : 0);
    // However many streams a scheduler names for a link, it is one row.
    const std::pair<int32_t, uint32_t> place = {lane.device, link ? 0 : lane.stream};
    const auto at = std::find_if(lanes.begin(), lanes.end(),
                                 [&](const Numbered& n) { return n.place == place; });
    row_of_lane.push_back(static_cast<size_t>(at - lanes.begin()));
    if (at != lanes.end()) continue;
    lanes.push_back(
        {place, {link ? "link " + table.links[index].name : device_row_name(table, lane), {}}});
  }
  for (const uint32_t task : schedule.order) {
    lanes[row_of_lane[schedule.lane[task]]].row.tasks.push_back(task);
  }
  std::sort(lanes.begin(), lanes.end(),
            [](const Numbered& a, const Numbered& b) { return a.place < b.place; });
  std::vector<TimelineRow> rows;
  for (Numbered& lane : lanes) {
    std::stable_sort(lane.row.tasks.begin(), lane.row.tasks.end(), [&](uint32_t a, uint32_t b) {
      return simulation.start_ns[a] < simulation.start_ns[b];
    });
    rows.push_back(std::move(lane.row));
  }
  return rows;
}

std::string timeline_text(const SimTable& table, const Schedule& schedule,
                          const Simulation& simulation, size_t columns, size_t most_rows) {
  std::string out;
  const auto rows = timeline_rows(table, schedule, simulation);
  for (size_t k = 0; k < std::min(rows.size(), most_rows); ++k) {
    out +=
        fmt::format("{:<12.12} {}\n", rows[k].name, row_line(table, simulation, rows[k], columns));
  }
  if (rows.size() > most_rows) out += fmt::format("... {} more rows\n", rows.size() - most_rows);
  return out + "F forward, X dX, W dW, U update, R reduce, C copy, . idle\n";
}

}  // namespace gradrack
