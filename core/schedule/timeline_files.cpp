// SPDX-License-Identifier: Apache-2.0
// Timelines as files, SVG and trace events: see timeline.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/schedule/task_kind.hpp"
#include "core/schedule/timeline.hpp"

namespace gradrack {

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

namespace {

// JSON does not care for bytes that are no UTF-8: they are replaced.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string svg_legend(double y) {
  std::string out;
  for (int32_t kind = 0; kind < kTaskKinds; ++kind) {
    const double x = 100 + 150 * static_cast<double>(kind);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        x, y, task_kind(kind).colour, x + 18, y + 11, task_kind(kind).name);
  }
  return out;
}

/// Keys that a span lacks are left out.
std::string trace_arguments(const TimelineSpan& span) {
  std::string out;
  const auto add = [&](const char* key, const std::string& value) {
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", key, value);
  };
  if (span.kind >= 0) add("kind", json_text(task_kind(span.kind).name));
  if (span.kind >= 0) add("stage", json_text(span.stage));
  if (span.microbatch >= 0) add("microbatch", std::to_string(span.microbatch));
  if (span.step >= 0) add("step", std::to_string(span.step));
  return out;
}

std::string trace_event(const TimelineSpan& span, size_t thread) {
  return fmt::format(
      "{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, "
      "\"dur\": {:.3f}, \"cname\": \"{}\", \"args\": {{{}}}}}",
      json_text(span.name), span.kind >= 0 ? task_kind(span.kind).name : "host", thread,
      static_cast<double>(span.start_ns) / 1e3,
      static_cast<double>(span.end_ns - span.start_ns) / 1e3, task_kind(span.kind).trace_colour,
      trace_arguments(span));
}

/// What a viewer calls process 1 or one of its threads.
std::string trace_name(const char* what, size_t thread, const std::string& name) {
  return fmt::format(
      "{{\"name\": \"{}\", \"ph\": \"M\", \"pid\": 1, \"tid\": {}, \"args\": {{\"name\": {}}}}}",
      what, thread, json_text(name));
}

}  // namespace

std::string timeline_svg(const Timeline& timeline) {
  constexpr double kLeft = 100, kWidth = 1400, kRow = 24;
  const double height = kRow * (static_cast<double>(timeline.rows.size()) + 2);
  const double scale = kWidth / static_cast<double>(std::max<int64_t>(1, timeline.end_ns));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"white\"/>\n",
      kLeft + kWidth + 10, height);
  std::string spans;  // in a group of their own, so that a page may stretch them
  for (size_t k = 0; k < timeline.rows.size(); ++k) {
    const double y = kRow * static_cast<double>(k) + 4;
    const std::string name = xml_text(timeline.rows[k].name);
    out += fmt::format("<text x=\"4\" y=\"{}\">{}</text>\n", y + 15, name);
    for (const TimelineSpan& span : timeline.rows[k].spans) {
      spans += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
          "stroke=\"white\" stroke-width=\"0.3\"><title>{} {:.6f} to {:.6f} ms</title></rect>\n",
          kLeft + static_cast<double>(span.start_ns) * scale, y,
          static_cast<double>(span.end_ns - span.start_ns) * scale, kRow - 4,
          task_kind(span.kind).colour, xml_text(span.name),
          static_cast<double>(span.start_ns) / 1e6, static_cast<double>(span.end_ns) / 1e6);
    }
  }
  out += fmt::format("<g class=\"spans\" data-left=\"{}\">\n{}</g>\n", kLeft, spans);
  return out + svg_legend(height - kRow) + "</svg>\n";
}

// Threads are numbered from 1: viewers take 0 for the idle one.
std::string timeline_trace(const Timeline& timeline) {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  out += trace_name("process_name", 0, timeline.name);
  for (size_t k = 0; k < timeline.rows.size(); ++k) {
    out += ",\n" + trace_name("thread_name", k + 1, timeline.rows[k].name);
    for (const TimelineSpan& span : timeline.rows[k].spans) out += ",\n" + trace_event(span, k + 1);
  }
  return out + "\n]}\n";
}

}  // namespace gradrack
