// SPDX-License-Identifier: Apache-2.0
// Figures: see report.hpp.
#include "core/simulate/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/schedule/page.hpp"

namespace gradrack {
namespace {

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string limit_text(int64_t limit) { return limit == 0 ? "none" : human_bytes(limit); }

std::string device_lines(const Report& report) {
  std::string out = fmt::format("{:<12} {:>14} {:>14} {:>12} {:>12}\n", "device", "busy ms",
                                "idle ms", "peak memory", "limit");
  for (size_t k = 0; k < report.table.devices.size(); ++k) {
    const DeviceUse& use = report.simulation.devices[k];
    const SimDevice& device = report.table.devices[k];
    for (const StreamUse& stream : use.streams) {
      const std::string name = stream_name(device.name, stream.stream);
      const bool first = &stream == use.streams.data();
      out += fmt::format("{:<12.24} {:>14.6f} {:>14.6f} {:>12} {:>12}\n", name, ms(stream.busy_ns),
                         ms(stream.idle_ns), first ? human_bytes(use.peak_bytes) : "",
                         first ? limit_text(device.memory_limit) : "");
    }
  }
  return out;
}

std::string link_lines(const Report& report) {
  if (report.table.links.empty()) return "";
  std::string out = fmt::format("{:<12} {:>14} {:>14} {:>12} {:>12}\n", "link", "busy ms",
                                "transfers", "bytes", "policy");
  for (size_t k = 0; k < report.table.links.size(); ++k) {
    const LinkUse& use = report.simulation.links[k];
    const SimLink& link = report.table.links[k];
    out += fmt::format("{:<12.24} {:>14.6f} {:>14} {:>12} {:>12}\n", link.name, ms(use.busy_ns),
                       use.transfers, human_bytes(use.bytes),
                       link_policy_names()[static_cast<size_t>(link.policy)]);
  }
  return out;
}

}  // namespace

std::string report_text(const Report& report) {
  const Simulation& run = report.simulation;
  std::string out =
      fmt::format("table     {}: {} tasks, {} devices, {} links\n", report.table.name,
                  report.table.size(), report.table.devices.size(), report.table.links.size());
  out += fmt::format("schedule  {}: {} lanes, {} waits\n", report.schedule.scheduler,
                     report.schedule.lanes.size(), report.schedule.waits.size());
  for (const std::string& note : report.notes) out += "          " + note + "\n";
  out += fmt::format("makespan  {:.6f} ms; no order is below {:.6f} ms\n", ms(run.makespan_ns),
                     ms(run.bound_ns));
  out += fmt::format("bubbles   {:.4f} of the longest device span, {:.6f} ms\n", run.bubble_rate,
                     ms(run.span_ns));
  return out + device_lines(report) + link_lines(report);
}

std::string report_json(const Report& report) {
  using Json = nlohmann::ordered_json;
  const Simulation& run = report.simulation;
  Json out = Json::object();
  out["table"] = report.table.name;
  out["tasks"] = report.table.size();
  out["schedule"] = report.schedule.scheduler;
  out["notes"] = report.notes;
  out["makespan_ns"] = run.makespan_ns;
  out["bound_ns"] = run.bound_ns;
  out["span_ns"] = run.span_ns;
  out["bubble_rate"] = run.bubble_rate;
  out["waits"] = report.schedule.waits.size();
  out["devices"] = Json::array();
  for (size_t k = 0; k < report.table.devices.size(); ++k) {
    const DeviceUse& use = run.devices[k];
    Json streams = Json::array();
    for (const StreamUse& stream : use.streams) {
      streams.push_back(
          {{"stream", stream.stream}, {"busy_ns", stream.busy_ns}, {"idle_ns", stream.idle_ns}});
    }
    out["devices"].push_back({{"name", report.table.devices[k].name},
                              {"first_ns", use.first_ns},
                              {"last_ns", use.last_ns},
                              {"busy_ns", use.busy_ns},
                              {"peak_bytes", use.peak_bytes},
                              {"memory_limit", report.table.devices[k].memory_limit},
                              {"streams", streams}});
  }
  out["links"] = Json::array();
  for (size_t k = 0; k < report.table.links.size(); ++k) {
    const LinkUse& use = run.links[k];
    out["links"].push_back({{"name", report.table.links[k].name},
                            {"busy_ns", use.busy_ns},
                            {"transfers", use.transfers},
                            {"bytes", use.bytes}});
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_html(const Report& report, const Timeline& timeline) {
  const std::string body =  // the picture has a legend of its colours
      "<pre>" + html_lines(report_text(report)) + "</pre>\n" + timeline_svg(timeline);
  return html_page(report.table.name,
                   "body { font-family: sans-serif; margin: 2em } pre { font-size: 90% }", body);
}

}  // namespace gradrack
