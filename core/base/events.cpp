// SPDX-License-Identifier: Apache-2.0
// Events: see events.hpp.
#include "core/base/events.hpp"

#include <nlohmann/json.hpp>

namespace gradrack {

const char* level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
  }
  return "error";
}

void EventSink::add(Listener listener) {
  const std::lock_guard<std::mutex> lock(mutex_);
  listeners_.push_back(std::move(listener));
}

void EventSink::emit(const Event& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Listener& listener : listeners_) listener(event);
}

EventRecorder::EventRecorder(EventSink& sink) {
  sink.add([this](const Event& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(event);
  });
}

std::vector<Event> EventRecorder::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return events_;
}

std::vector<Event> EventRecorder::of_kind(const std::string& kind) const {
  std::vector<Event> found;
  for (Event& event : events()) {
    if (event.kind == kind) found.push_back(std::move(event));
  }
  return found;
}

std::string to_json_line(const Event& event) {
  // An object from the start: made in operator[] it would be left broken without memory.
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  line["event"] = event.kind;
  line["level"] = level_name(event.level);
  line["message"] = event.message;
  for (const auto& [key, value] : event.fields) line[key] = value;
  // Text may come from a plugin or a file name: bytes that are not UTF-8 are replaced, not thrown
  // on.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace gradrack
