// SPDX-License-Identifier: Apache-2.0
// Timelines as files, SVG and trace events: see timeline.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/simulate/timeline.hpp"

namespace gradrack {
namespace {

constexpr const char* kColours[] = {"#4e79a7", "#e15759", "#59a14f",
                                    "#b07aa1", "#f28e2b", "#9c9c9c"};

const char* colour_of(int32_t kind) { return kind >= 0 && kind < 6 ? kColours[kind] : "#bab0ac"; }

std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

// JSON does not care for bytes that are no UTF-8: they are replaced.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string legend(double y) {
  std::string out;
  for (size_t kind = 0; kind < task_kind_names().size(); ++kind) {
    const double x = 100 + 150 * static_cast<double>(kind);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        x, y, colour_of(static_cast<int32_t>(kind)), x + 18, y + 11, task_kind_names()[kind]);
  }
  return out;
}

std::string trace_event(const SimTable& table, const Simulation& simulation, uint32_t index,
                        size_t row) {
  const Task& task = table.tasks.tasks[index];
  const std::string stage =
      task.stage >= 0 ? table.tasks.stages[static_cast<size_t>(task.stage)] : "";
  return fmt::format(
      "{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 0, \"tid\": {}, \"ts\": {:.3f}, "
      "\"dur\": {:.3f}, \"args\": {{\"stage\": {}, \"microbatch\": {}}}}}",
      json_text(task.name), task_kind_name(task.kind), row,
      static_cast<double>(simulation.start_ns[index]) / 1e3,
      static_cast<double>(simulation.end_ns[index] - simulation.start_ns[index]) / 1e3,
      json_text(stage), table.more[index].microbatch);
}

}  // namespace

std::string timeline_svg(const SimTable& table, const Schedule& schedule,
                         const Simulation& simulation) {
  constexpr double kLeft = 100, kWidth = 1400, kRow = 24;
  const auto rows = timeline_rows(table, schedule, simulation);
  const double height = kRow * (static_cast<double>(rows.size()) + 2);
  const double scale = kWidth / static_cast<double>(std::max<int64_t>(1, simulation.makespan_ns));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      kLeft + kWidth + 10, height);
  for (size_t k = 0; k < rows.size(); ++k) {
    const double y = kRow * static_cast<double>(k) + 4;
    out += fmt::format("<text x=\"4\" y=\"{}\">{}</text>\n", y + 15, xml_text(rows[k].name));
    for (const uint32_t task : rows[k].tasks) {
      const int64_t start = simulation.start_ns[task], end = simulation.end_ns[task];
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
          "stroke=\"white\" stroke-width=\"0.3\"><title>{} {:.6f} to {:.6f} ms</title></rect>\n",
          kLeft + static_cast<double>(start) * scale, y, static_cast<double>(end - start) * scale,
          kRow - 4, colour_of(table.tasks.tasks[task].kind), xml_text(table.tasks.tasks[task].name),
          static_cast<double>(start) / 1e6, static_cast<double>(end) / 1e6);
    }
  }
  return out + legend(height - kRow) + "</svg>\n";
}

std::string timeline_trace(const SimTable& table, const Schedule& schedule,
                           const Simulation& simulation) {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  out += R"({"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "gradrack simulate"}})";
  const auto rows = timeline_rows(table, schedule, simulation);
  for (size_t k = 0; k < rows.size(); ++k) {
    out += fmt::format(
        ",\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 0, \"tid\": {}, "
        "\"args\": {{\"name\": {}}}}}",
        k, json_text(rows[k].name));
    for (const uint32_t task : rows[k].tasks) {
      out += ",\n" + trace_event(table, simulation, task, k);
    }
  }
  return out + "\n]}\n";
}

}  // namespace gradrack
