// SPDX-License-Identifier: Apache-2.0
// MetricsWriter: where a run's records and events go: the host's own file, then each sink.
//
// Made by the trainer from metrics.sinks of the run file. Invariant: it never ends a run. What a
// sink answers but GR_OK is one event of kind "metrics_error", the first time; events that come
// between two records wait for the next one, since they may come from any thread, and the latest
// of them are lost, counted, when there are too many.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/plugin/choose.hpp"
#include "core/state/metrics.hpp"
#include "core/train/session.hpp"

namespace gradrack {

class MetricsWriter {
 public:
  /// Listens to the session's events from here on; those before open() are kept for the files, the
  /// latest of very many left out. Makes the sinks of the run file. One that cannot work on this
  /// machine is left out, with an event "fallback"; one that is not there, or whose options are
  /// wrong, is an error. [main]
  static Result<std::shared_ptr<MetricsWriter>> make(Session& session);

  /// Opens the host's file and every sink for a run that has made `step` updates. The error is the
  /// host's file's; a sink that does not open is said and left out. [main]
  Status open(const std::string& folder, const std::string& file, int64_t step);

  /// [main]
  void record(const MetricsRecord& record);
  /// Takes an event; emits none itself, so that a listener may call it. [any]
  void record(const Event& event);
  /// Hands over events that wait, and lets sinks write what they hold. [main]
  void flush();
  /// As flush, and the sinks are closed: the run has ended. [main]
  void close();

 private:
  struct Sink {
    Instance<gr_metrics_t> instance;
    bool open = false;
    bool failed = false;  ///< and this was said
  };
  struct Waiting {
    Event event;
    double time_s;
  };

  explicit MetricsWriter(Session& session) : session_(session) {}
  void hand_over_events();
  void hand_over(const Waiting& waiting);
  template <typename Call>
  void call(Sink& sink, const char* what, Call&& make_call);

  Session& session_;
  std::unique_ptr<MetricsFile> file_;
  std::vector<Sink> sinks_;
  int64_t step_ = 0;
  std::mutex mutex_;          // of what follows, and of setting file_
  std::vector<Event> early_;  ///< before there was a file
  std::vector<Waiting> waiting_;
  int64_t lost_ = 0;  ///< events since the last hand-over
};

}  // namespace gradrack
