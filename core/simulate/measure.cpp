// SPDX-License-Identifier: Apache-2.0
// What a simulation came to: see measure.hpp and simulation.hpp.
#include "core/simulate/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gradrack {
namespace {

void measure_tasks(const SimTable& table, const Schedule& schedule, Simulation* out) {
  std::vector<bool> used(table.devices.size(), false);
  for (uint32_t index = 0; index < table.size(); ++index) {
    const int64_t cost = table.tasks.tasks[index].cost_ns;
    out->makespan_ns = std::max(out->makespan_ns, out->end_ns[index]);
    if (table.is_transfer(index)) {
      LinkUse& link = out->links[table.link_of(index)];
      link.busy_ns += cost;
      link.transfers += 1;
      link.bytes += table.more[index].bytes_moved;
      continue;
    }
    const auto device = static_cast<size_t>(table.tasks.tasks[index].device);
    DeviceUse& use = out->devices[device];
    use.first_ns =
        used[device] ? std::min(use.first_ns, out->start_ns[index]) : out->start_ns[index];
    use.last_ns = std::max(use.last_ns, out->end_ns[index]);
    use.busy_ns += cost;
    used[device] = true;
    const uint32_t stream = schedule.lanes[schedule.lane[index]].stream;
    const auto at = std::find_if(use.streams.begin(), use.streams.end(),
                                 [&](const StreamUse& s) { return s.stream == stream; });
    StreamUse& mine = at != use.streams.end() ? *at : use.streams.emplace_back(StreamUse{stream});
    mine.busy_ns += cost;
  }
}

int64_t longest_path(const SimTable& table) {
  std::vector<int64_t> end(table.size(), 0);
  int64_t longest = 0;
  for (uint32_t index = 0; index < table.size(); ++index) {
    const Task& task = table.tasks.tasks[index];
    int64_t start = 0;
    for (const uint32_t dep : task.deps) start = std::max(start, end[dep]);
    end[index] = start + task.cost_ns;
    if (table.is_transfer(index)) end[index] += table.links[table.link_of(index)].latency_ns;
    longest = std::max(longest, end[index]);
  }
  return longest;
}

}  // namespace

int64_t lower_bound_ns(const SimTable& table) {
  std::vector<int64_t> busy(table.devices.size() + table.links.size(), 0);
  for (const Task& task : table.tasks.tasks) busy[static_cast<size_t>(task.device)] += task.cost_ns;
  int64_t bound = longest_path(table);
  for (size_t k = 0; k < busy.size(); ++k) {
    const int64_t share = k < table.devices.size() ? table.devices[k].streams : 1;
    bound = std::max(bound, (busy[k] + share - 1) / share);
  }
  return bound;
}

void measure(const SimTable& table, const Schedule& schedule, Simulation* out) {
  measure_tasks(table, schedule, out);
  int64_t busy = 0, streams = 0;
  for (DeviceUse& use : out->devices) {
    std::sort(use.streams.begin(), use.streams.end(),
              [](const StreamUse& a, const StreamUse& b) { return a.stream < b.stream; });
    for (StreamUse& stream : use.streams) stream.idle_ns = out->makespan_ns - stream.busy_ns;
    out->span_ns = std::max(out->span_ns, use.last_ns - use.first_ns);
    busy += use.busy_ns;
    streams += static_cast<int64_t>(use.streams.size());
  }
  if (streams > 0 && out->span_ns > 0) {
    out->bubble_rate = 1 - static_cast<double>(busy) / static_cast<double>(streams) /
                               static_cast<double>(out->span_ns);
  }
  out->bound_ns = lower_bound_ns(table);
}

Status check_memory(const SimTable& table, const Simulation& simulation) {
  for (size_t k = 0; k < table.devices.size(); ++k) {
    const int64_t limit = table.devices[k].memory_limit;
    const int64_t peak = simulation.devices[k].peak_bytes;
    if (limit == 0 || peak <= limit) continue;
    return Status(GR_FAILED_PRECONDITION,
                  fmt::format("device '{}' holds {} bytes at its peak, its memory limit is {}: "
                              "raise the limit or choose an order that holds less",
                              table.devices[k].name, peak, limit))
        .in_area(Area::kConfig);
  }
  return {};
}

}  // namespace gradrack
