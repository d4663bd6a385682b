// SPDX-License-Identifier: Apache-2.0
// Records and events to the host's file and to sinks: see metrics_writer.hpp.
#include "core/train/metrics_writer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace gradrack {
namespace {

constexpr size_t kMostWaiting = 256;

double now_s() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

int32_t log_level(Level level) {
  if (level == Level::kDebug) return GR_LOG_DEBUG;
  if (level == Level::kInfo) return GR_LOG_INFO;
  return level == Level::kWarn ? GR_LOG_WARN : GR_LOG_ERROR;
}

}  // namespace

Result<std::shared_ptr<MetricsWriter>> MetricsWriter::make(Session& session) {
  std::shared_ptr<MetricsWriter> writer(new MetricsWriter(session));
  // Not owned by the session: its plugins go before its listeners.
  session.events.add([weak = std::weak_ptr(writer)](const Event& event) {
    if (const auto alive = weak.lock()) alive->record(event);
  });
  const PluginSection& all = session.config.sinks;
  for (const PluginChoice& choice : all.chain) {
    // Only "it cannot work here" may pass: a name that nobody has is a mistake in the run file.
    const Result<const Factory*> known = session.plugins->find(all.kind, choice.name);
    if (!known.ok()) {
      const std::string text = choice.place.text() + ": " + known.status().message();
      return Status(known.status().code(), text).in_area(Area::kPlugin);
    }
    const PluginSection one{all.kind, {choice}, false};
    Result<Chosen<gr_metrics_t>> chosen =
        choose<gr_metrics_t>(*session.plugins, one, session.events);
    if (chosen.ok()) {
      writer->sinks_.push_back({std::move(chosen->instance)});
      continue;
    }
    const std::string reason = chosen.status().message();
    if (chosen.status().code() != GR_UNSUPPORTED) return chosen.status();
    session.events.emit({"fallback",
                         Level::kWarn,
                         "metrics: '" + choice.name + "' is left out: " + reason,
                         {{"kind", all.kind}, {"plugin", choice.name}, {"reason", reason}}});
  }
  return writer;
}

Status MetricsWriter::open(const std::string& folder, const std::string& file, int64_t step) {
  GR_ASSIGN(std::unique_ptr<MetricsFile> opened, MetricsFile::open(file));
  std::vector<Event> early;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    file_ = std::move(opened);
    early.swap(early_);
  }
  for (const std::string& text : session_.config.defaults) {  // said before anybody listened
    record(Event{"default", Level::kInfo, "default: " + text, {{"default", text}}});
  }
  for (const Event& event : early) record(event);
  step_ = step;
  gr_metrics_run_t run = {};
  run.struct_size = sizeof run;
  run.folder = folder.c_str();
  run.name = session_.config.run.name.c_str();
  run.step = step;
  run.max_steps = session_.config.run.max_steps;
  for (Sink& sink : sinks_) {
    sink.open = true;
    call(sink, "open", [&](const gr_metrics_t& table, gr_error_t* err) {
      return table.open(table.self, &run, err);
    });
    sink.open = !sink.failed;
  }
  return {};
}

// A sink that failed is asked again: a disk may have room later.
template <typename Call>
void MetricsWriter::call(Sink& sink, const char* what, Call&& make_call) {
  if (!sink.open) return;
  gr_error_t err = {};
  const Status status = status_from(make_call(sink.instance.table(), &err), err);
  if (status.ok() || sink.failed) return;
  sink.failed = true;
  const std::string text =
      fmt::format("metrics sink '{}': {}: {}; training goes on, {}", sink.instance.name(), what,
                  status.message(),
                  what == std::string("open") ? "without it" : "what it writes may lack parts");
  session_.events.emit({"metrics_error",
                        Level::kWarn,
                        text,
                        {{"sink", sink.instance.name()}, {"reason", status.message()}}});
}

void MetricsWriter::record(const MetricsRecord& record) {
  file_->record(record, session_.events);
  if (sinks_.empty()) return;
  hand_over_events();
  step_ = record.step;
  std::vector<gr_metric_t> values;
  for (const auto& [name, value] : record.values) values.push_back({name.c_str(), value});
  gr_metrics_record_t out = {};
  out.struct_size = sizeof out;
  out.value_count = static_cast<uint32_t>(values.size());
  out.step = record.step;
  out.tokens = record.tokens;
  out.time_s = now_s();
  out.values = values.data();
  for (Sink& sink : sinks_) {
    call(sink, "record", [&](const gr_metrics_t& table, gr_error_t* err) {
      return table.record(table.self, &out, err);
    });
  }
}

void MetricsWriter::record(const Event& event) {
  MetricsFile* file = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    file = file_.get();
    const bool kept = event.level != Level::kDebug && early_.size() < kMostWaiting;
    if (file == nullptr && kept) early_.push_back(event);
  }
  if (file == nullptr) return;
  file->record(event);
  if (sinks_.empty() || event.level == Level::kDebug) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.size() < kMostWaiting) {
    waiting_.push_back({event, now_s()});
  } else {
    ++lost_;
  }
}

void MetricsWriter::hand_over_events() {
  std::vector<Waiting> waiting;
  int64_t lost = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting.swap(waiting_);
    lost = std::exchange(lost_, 0);
  }
  for (const Waiting& each : waiting) hand_over(each);
  if (lost == 0) return;
  const std::string text = fmt::format("{} more events; they are in the metrics file", lost);
  hand_over({{"events_left_out", Level::kWarn, text}, now_s()});
}

void MetricsWriter::hand_over(const Waiting& waiting) {
  gr_metrics_event_t out = {};
  out.struct_size = sizeof out;
  out.level = log_level(waiting.event.level);
  out.step = step_;
  out.time_s = waiting.time_s;
  out.kind = waiting.event.kind.c_str();
  out.message = waiting.event.message.c_str();
  for (Sink& sink : sinks_) {
    if (sink.instance->event == nullptr) continue;
    call(sink, "event", [&](const gr_metrics_t& table, gr_error_t* err) {
      return table.event(table.self, &out, err);
    });
  }
}

void MetricsWriter::flush() {
  hand_over_events();
  for (Sink& sink : sinks_) {
    if (sink.instance->flush == nullptr) continue;
    call(sink, "flush",
         [&](const gr_metrics_t& table, gr_error_t* err) { return table.flush(table.self, err); });
  }
}

void MetricsWriter::close() {
  flush();
  for (Sink& sink : sinks_) {
    if (sink.instance->close == nullptr) continue;
    call(sink, "close",
         [&](const gr_metrics_t& table, gr_error_t* err) { return table.close(table.self, err); });
    sink.open = false;
  }
}

}  // namespace gradrack
