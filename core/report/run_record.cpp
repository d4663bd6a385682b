// SPDX-License-Identifier: Apache-2.0
// Reading a run folder: see run_record.hpp.
#include "core/report/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/schedule/task_kind.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostPoints = 4000;
constexpr size_t kMostSeries = 400;
constexpr size_t kMostEvents = 1000;
constexpr size_t kMostSpans = 20000;
constexpr int64_t kMostBytes = int64_t{256} << 20;  // of a file that is read whole

// Steps that were made again after a resume replace what the lost stretch said.
void add_point(Series* series, int64_t step, double value) {
  auto& points = series->points;
  while (!points.empty() && points.back().first >= step) points.pop_back();
  points.emplace_back(step, value);
  if (points.size() <= kMostPoints) return;
  for (size_t k = 0; 2 * k < points.size(); ++k) points[k] = points[2 * k];
  points.resize((points.size() + 1) / 2);
}

double flagged(const Json& line, const std::string& name) {
  const auto flags = line.find("flags");
  if (flags == line.end() || !flags->is_object() || !flags->contains(name)) return std::nan("");
  const Json& flag = (*flags)[name];
  if (flag == "inf") return std::numeric_limits<double>::infinity();
  if (flag == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nan("");
}

void add_event(const Json& line, int64_t step, RunRecord* record) {
  RecordedEvent event;
  event.after_step = step;
  for (const auto& [key, value] : line.items()) {
    if (!value.is_string()) continue;
    const std::string text = value.get<std::string>();
    if (key == "event") {
      event.kind = text;
    } else if (key == "level") {
      event.level = text;
    } else if (key == "message") {
      event.message = text;
    } else {
      event.fields[key] = text;
    }
  }
  record->events.push_back(std::move(event));
  if (record->events.size() <= 2 * kMostEvents) return;
  // The first ones say what the run was made of: keep them, and the latest.
  const auto begin = record->events.begin() + kMostEvents;
  record->events.erase(begin, begin + kMostEvents / 2);
}

void add_values(const Json& line, int64_t step, RunRecord* record) {
  for (const auto& [name, value] : line.items()) {
    if (name == "step" || name == "tokens") continue;
    if (!value.is_number() && !value.is_null()) continue;
    const bool known = record->series.count(name) > 0;
    if (!known && record->series.size() >= kMostSeries) continue;
    add_point(&record->series[name], step,
              value.is_number() ? value.get<double>() : flagged(line, name));
  }
}

void read_metrics(std::istream& in, RunRecord* record) {
  int64_t step = 0;
  for (std::string text; std::getline(in, text);) {
    ++record->lines;
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) {
      ++record->broken_lines;
    } else if (line.contains("event")) {
      add_event(line, step, record);
    } else if (line.contains("step") && line["step"].is_number_integer()) {
      step = line["step"].get<int64_t>();
      add_values(line, step, record);
    } else {
      ++record->broken_lines;
    }
  }
}

int32_t kind_named(const std::string& name) {
  for (int32_t kind = 0; kind < kTaskKinds; ++kind) {
    if (name == task_kind(kind).name) return kind;
  }
  return -1;
}

int64_t ns_of(const Json& event, const char* key) {
  const auto at = event.find(key);
  if (at == event.end() || !at->is_number()) return 0;
  const double us = at->get<double>();
  return us > 0 && us < 1e15 ? static_cast<int64_t>(us * 1e3) : 0;
}

std::string text_of(const Json& event, const char* key) {
  const auto at = event.find(key);
  return at != event.end() && at->is_string() ? at->get<std::string>() : std::string();
}

template <typename Read>
void read_optional(const std::string& path, const std::string& without, RunRecord* record,
                   Read&& read) {
  const Result<std::string> text = read_file(path, kMostBytes);
  Status status = text.ok() ? read(*text) : text.status();
  if (status.ok()) return;
  record->notes.push_back(status.code() == GR_NOT_FOUND ? without : status.message());
}

}  // namespace

Result<Timeline> read_timeline(const std::string& json, size_t most, int64_t* left_out) {
  const Json all = Json::parse(json, nullptr, false);
  if (!all.is_object() || !all.contains("traceEvents") || !all["traceEvents"].is_array()) {
    return invalid_argument("trace.json: no list of traceEvents");
  }
  std::map<int64_t, TimelineRow> rows;
  Timeline timeline;
  size_t count = 0;
  for (const Json& event : all["traceEvents"]) {
    if (!event.is_object()) continue;
    const auto thread = event.find("tid");
    if (thread == event.end() || !thread->is_number_integer()) continue;
    const Json arguments = event.value("args", Json::object());
    const std::string name = text_of(event, "name");
    if (name == "thread_name") {
      rows[thread->get<int64_t>()].name = text_of(arguments, "name");
    } else if (text_of(event, "ph") == "X") {
      if (++count > most) continue;
      TimelineSpan span;
      span.name = name;
      span.kind = kind_named(text_of(arguments, "kind"));
      span.stage = text_of(arguments, "stage");
      span.start_ns = ns_of(event, "ts");
      span.end_ns = span.start_ns + ns_of(event, "dur");
      timeline.end_ns = std::max(timeline.end_ns, span.end_ns);
      rows[thread->get<int64_t>()].spans.push_back(std::move(span));
    }
  }
  *left_out = static_cast<int64_t>(count > most ? count - most : 0);
  for (auto& [id, row] : rows) timeline.rows.push_back(std::move(row));
  return timeline;
}

Result<RunRecord> read_run_folder(const std::string& folder, const std::string& metrics_file) {
  RunRecord record;
  record.folder = folder;
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    return not_found("no run folder at '" + folder + "': name the folder that run.output named");
  }
  const std::string metrics = folder + "/" + metrics_file;
  std::ifstream in(metrics, std::ios::binary);
  if (!fs::is_regular_file(metrics, failed) || !in.is_open()) {
    return not_found("no '" + metrics_file + "' in '" + folder +
                     "': name the folder of a run, and --metrics where metrics.file differs");
  }
  read_metrics(in, &record);
  if (record.broken_lines > 0) {
    record.notes.push_back(std::to_string(record.broken_lines) + " of " +
                           std::to_string(record.lines) + " lines of " + metrics_file +
                           " are no records");
  }
  read_optional(folder + "/config.yaml", "no config.yaml", &record, [&](const std::string& text) {
    record.config = text;
    return Status();
  });
  read_optional(folder + "/trace.json", "no trace.json: metrics.trace_steps asks for one", &record,
                [&](const std::string& text) -> Status {
                  GR_ASSIGN(record.timeline,
                            read_timeline(text, kMostSpans, &record.spans_left_out));
                  return {};
                });
  read_optional(folder + "/plan.json", "no plan.json, so no memory map", &record,
                [&](const std::string& text) -> Status {
                  GR_ASSIGN(record.memory, read_memory_maps(text));
                  return {};
                });
  return record;
}

}  // namespace gradrack
