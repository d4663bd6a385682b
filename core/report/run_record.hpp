// SPDX-License-Identifier: Apache-2.0
// RunRecord: what a run folder says of its run, read back for a report.
//
// First step of report/. Reads the files that docs/formats.md describes and nothing else.
// Invariant: each step stands in a series once, the latest time it was made; a long series is
// thinned out, so that memory and the page stay bounded. A file that is missing or broken is a
// note, not an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.hpp"
#include "core/plan/memory_map.hpp"
#include "core/schedule/timeline.hpp"

namespace gradrack {

/// One figure over the run.
struct Series {
  std::vector<std::pair<int64_t, double>> points = {};  ///< (step, value) by step; may be NaN, inf
};

/// An event of the run, in the order of the file.
struct RecordedEvent {
  std::string kind, level, message;
  std::map<std::string, std::string> fields = {};
  int64_t after_step = 0;  ///< of the record before it
};

struct RunRecord {
  std::string folder;
  std::map<std::string, Series> series;  ///< by name: "train/loss"
  std::vector<RecordedEvent> events;     ///< the last ones, where there are very many
  int64_t lines = 0;                     ///< of the metrics file
  int64_t broken_lines = 0;              ///< of these, no records
  std::string config;                    ///< config.yaml
  Timeline timeline;                     ///< of the traced steps; no rows without a trace
  int64_t spans_left_out = 0;
  std::vector<MemoryMap> memory;
  std::vector<std::string> notes;  ///< what is not there, and why
};

/// GR_NOT_FOUND: there is no such folder, or no metrics in it, with what to do. `metrics_file`:
/// name inside the folder.
Result<RunRecord> read_run_folder(const std::string& folder, const std::string& metrics_file);

/// The spans of a trace.json, in rows; at most `most` spans, counted beyond. GR_INVALID_ARGUMENT.
Result<Timeline> read_timeline(const std::string& json, size_t most, int64_t* left_out);

}  // namespace gradrack
