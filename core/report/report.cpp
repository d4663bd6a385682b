// SPDX-License-Identifier: Apache-2.0
// The page about a run: see report.hpp.
#include "core/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/report/assets.hpp"
#include "core/schedule/page.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostDevices = 8;  // memory maps of a plan
constexpr size_t kMostPlans = 6;

/// Which figures share a chart: the first that takes a name has it.
struct Panel {
  const char* title;
  std::function<bool(const std::string&)> takes;
};

const std::vector<Panel>& panels() {
  static const auto* all = new std::vector<Panel>{
      {"loss",
       [](const std::string& name) {
         return name == "train/loss" || name == "eval/loss" ||
                (name.find("objective.") != std::string::npos);
       }},
      {"learning rate",
       [](const std::string& name) { return name == "lr" || name.starts_with("lr/"); }},
      {"gradient norm", [](const std::string& name) { return name == "grad_norm"; }},
      {"tokens a second", [](const std::string& name) { return name == "tokens_per_second"; }},
      {"time of a traced step, ms", [](const std::string& name) {
         return name.starts_with("time/") && name.find("_ms/") == std::string::npos;
       }}};
  return *all;
}

Json series_json(const std::string& name, const Series& series) {
  Json x = Json::array(), y = Json::array();
  for (const auto& [step, value] : series.points) {
    x.push_back(step);
    y.push_back(std::isfinite(value) ? Json(value) : Json());
  }
  return {{"name", name}, {"x", std::move(x)}, {"y", std::move(y)}};
}

// Figures that no panel takes get one each.
std::string data_json(const RunRecord& record) {
  std::map<size_t, Json> by_panel;
  Json others = Json::array();
  for (const auto& [name, series] : record.series) {
    size_t at = 0;
    while (at < panels().size() && !panels()[at].takes(name)) ++at;
    if (at < panels().size()) {
      by_panel[at].push_back(series_json(name, series));
    } else {
      others.push_back({{"title", name}, {"series", {series_json(name, series)}}});
    }
  }
  Json all = Json::array();
  for (auto& [at, series] : by_panel) {
    all.push_back({{"title", panels()[at].title}, {"series", std::move(series)}});
  }
  for (Json& other : others) all.push_back(std::move(other));
  std::string text =
      Json{{"panels", std::move(all)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  // A name must not end the element that the data stands in.
  for (size_t k = text.find('<'); k != std::string::npos; k = text.find('<', k)) {
    text.replace(k, 1, "\\u003c");
  }
  return text;
}

std::string fact(const std::string& name, const std::string& value) {
  return "<div><span>" + xml_text(name) + "</span><b>" + xml_text(value) + "</b></div>\n";
}

std::string short_number(double value) { return fmt::format("{:.5g}", value); }

std::string facts(const RunRecord& record) {
  std::string out = "<div class=\"facts\">\n";
  const auto series = [&](const char* name) -> const Series* {
    const auto at = record.series.find(name);
    return at == record.series.end() || at->second.points.empty() ? nullptr : &at->second;
  };
  if (const Series* loss = series("train/loss")) {
    const auto& [step, value] = loss->points.back();
    out += fact("last step", std::to_string(step)) + fact("train/loss", short_number(value));
  }
  if (const Series* loss = series("eval/loss")) {
    const auto best = std::min_element(
        loss->points.begin(), loss->points.end(), [](const auto& a, const auto& b) {
          return std::isnan(b.second) ? !std::isnan(a.second) : a.second < b.second;
        });
    out += fact("best eval/loss",
                fmt::format("{} at step {}", short_number(best->second), best->first));
  }
  if (const Series* speed = series("tokens_per_second")) {
    out += fact("tokens a second", short_number(speed->points.back().second));
  }
  if (const Series* memory = series("memory/peak_bytes")) {
    out += fact("memory", human_bytes(static_cast<int64_t>(memory->points.back().second)));
  }
  return out + fact("folder", record.folder) + "</div>\n";
}

std::string event_rows(const RunRecord& record,
                       const std::function<bool(const RecordedEvent&)>& shown) {
  std::string out;
  for (const RecordedEvent& event : record.events) {
    if (!shown(event)) continue;
    out += fmt::format("<tr class=\"{}\"><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
                       xml_text(event.level), event.after_step, xml_text(event.kind),
                       xml_text(event.message));
  }
  return out;
}

std::string event_table(const std::string& rows) {
  if (rows.empty()) return "<p class=\"note\">none</p>\n";
  return "<table><tr><th>step</th><th>event</th><th>what happened</th></tr>\n" + rows +
         "</table>\n";
}

std::string environment(const RunRecord& record) {
  std::string out;
  for (const RecordedEvent& event : record.events) {
    if (event.kind != "environment") continue;
    out = "<table>\n";  // the last one: of the stretch that was made last
    for (const auto& [name, value] : event.fields) {
      out += "<tr><td>" + xml_text(name) + "</td><td>" + xml_text(value) + "</td></tr>\n";
    }
    out += "</table>\n";
  }
  return out.empty() ? "<p class=\"note\">not recorded</p>\n" : out;
}

std::string timeline_section(const RunRecord& record) {
  if (record.timeline.rows.empty()) {
    return "<p class=\"note\">No step was traced: metrics.trace_steps asks for it.</p>\n";
  }
  std::string out =
      "<label>stretch <input type=\"range\" id=\"zoom\" min=\"0\" max=\"6\" "
      "step=\"0.25\" value=\"0\"></label>\n<div class=\"wide\" id=\"timeline\">" +
      timeline_svg(record.timeline) + "</div>\n";
  if (record.spans_left_out > 0) {
    out += fmt::format("<p class=\"note\">{} later tasks are left out; trace.json has them.</p>\n",
                       record.spans_left_out);
  }
  return out;
}

std::string memory_table(const MemoryMap& map) {
  std::string out = "<table>\n";
  int64_t total = 0;
  for (const auto& [name, bytes] : map.classes) {
    total += bytes;
    if (bytes == 0) continue;
    out += fmt::format("<tr><td>{}</td><td class=\"number\">{}</td></tr>\n", xml_text(name),
                       human_bytes(bytes));
  }
  return out + fmt::format("<tr><td>in all</td><td class=\"number\">{}</td></tr></table>\n",
                           human_bytes(total));
}

std::string memory_section(const RunRecord& record) {
  if (record.memory.empty()) return "<p class=\"note\">No plan.json in the folder.</p>\n";
  std::string out;
  for (size_t k = 0; k < std::min(record.memory.size(), kMostPlans); ++k) {
    const MemoryMap& map = record.memory[k];
    out +=
        fmt::format("<h3>{}: {} tasks</h3>\n{}", xml_text(map.name), map.tasks, memory_table(map));
    for (size_t d = 0; d < std::min(map.devices.size(), kMostDevices); ++d) {
      if (map.arena_bytes[d] == 0) continue;
      out += fmt::format(
          "<p>Arena of {}: {}; most in use {}, at {}.</p>\n<div class=\"wide\">{}"
          "</div>\n",
          xml_text(map.devices[d]), human_bytes(map.arena_bytes[d]), human_bytes(map.live_peak),
          xml_text(map.peak_task), memory_map_svg(map, d));
    }
  }
  if (record.memory.size() > kMostPlans) {
    out += fmt::format("<p class=\"note\">{} more plans are in plan.json.</p>\n",
                       record.memory.size() - kMostPlans);
  }
  return out;
}

std::string run_name(const RunRecord& record) {
  for (const RecordedEvent& event : record.events) {
    const auto name = event.fields.find("run");
    if (event.kind == "environment" && name != event.fields.end()) return name->second;
  }
  return record.folder;
}

}  // namespace

std::string run_report_html(const RunRecord& record) {
  const auto trouble = [](const RecordedEvent& event) {
    return event.kind == "fallback" || event.kind == "default" || event.level == "warn" ||
           event.level == "error";
  };
  std::string body = facts(record);
  for (const std::string& note : record.notes) {
    body += "<p class=\"note\">" + xml_text(note) + "</p>\n";
  }
  body += "<h2>Curves</h2>\n<div id=\"charts\"></div>\n";
  body += "<h2>Streams over traced steps</h2>\n" + timeline_section(record);
  body += "<h2>Memory over the step</h2>\n" + memory_section(record);
  body += "<h2>Fallbacks and warnings</h2>\n" + event_table(event_rows(record, trouble));
  body += "<h2>Environment</h2>\n" + environment(record);
  body += "<h2>Configuration</h2>\n<pre>" + html_lines(record.config) + "</pre>\n";
  body += "<h2>Events</h2>\n<details><summary>" + std::to_string(record.events.size()) +
          " events</summary>\n" +
          event_table(event_rows(record, [](const RecordedEvent&) { return true; })) +
          "</details>\n";
  body += "<script type=\"application/json\" id=\"data\">" + data_json(record) + "</script>\n";
  body += std::string("<script>\n") + kReportScript + "</script>";
  return html_page(run_name(record), kReportStyle, body);
}

}  // namespace gradrack
