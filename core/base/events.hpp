// SPDX-License-Identifier: Apache-2.0
// Events: what the host did on its own account, said aloud.
//
// Base of the flow; every folder emits here. A fallback taken, a default that matters, a library
// that would not load: each is one Event, which the log prints, a run's metrics file records and
// tests read back. Invariant: an event never changes what the program does. It does not format for
// the terminal (log.hpp does).
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gradrack {

enum class Level { kDebug, kInfo, kWarn, kError };

/// "debug", "info", "warn", "error".
const char* level_name(Level level);

/// `kind` is a short stable word for machines ("fallback"), `message` a sentence for people,
/// `fields` the parts of the message for machines.
struct Event {
  std::string kind;
  Level level = Level::kInfo;
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// Hands each event to every listener, in the order in which they were added. [any]
class EventSink {
 public:
  using Listener = std::function<void(const Event&)>;

  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  /// Listeners are called one at a time, under a lock: they must be short and must not emit.
  void add(Listener listener);
  void emit(const Event& event);

 private:
  std::mutex mutex_;
  std::vector<Listener> listeners_;
};

/// A listener that keeps what it hears: for tests and for `explain`. Must outlive the sink.
class EventRecorder {
 public:
  explicit EventRecorder(EventSink& sink);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  /// A copy of all events so far. [any]
  std::vector<Event> events() const;
  /// Those of one kind.
  std::vector<Event> of_kind(const std::string& kind) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

/// One JSON object on one line, without a line break:
/// {"event":KIND,"level":..,"message":..,FIELDS}.
std::string to_json_line(const Event& event);

}  // namespace gradrack
