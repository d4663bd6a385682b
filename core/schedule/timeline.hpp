// SPDX-License-Identifier: Apache-2.0
// Timeline: what ran when, one row a stream, as lines of text, an SVG file or a trace for Chrome
// and Perfetto.
//
// Last part of schedule/, for whoever knows times: simulations, predictions, measured steps. It
// knows names and times alone. Invariant: every span is in the SVG and in the trace once, with its
// own start and end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradrack {

/// Something that ran, or what the host did.
struct TimelineSpan {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int32_t kind = -1;  ///< GR_KIND_*; -1: no task
  std::string name = {};
  std::string stage = {};
  int64_t microbatch = -1;  ///< -1: none
  int64_t step = -1;        ///< -1: none
};

struct TimelineRow {
  std::string name;                      ///< "cpu", "cpu.1" for stream 1, "link 0to1"
  std::vector<TimelineSpan> spans = {};  ///< by start
};

struct Timeline {
  std::string name;  ///< of the whole, for trace viewers
  std::vector<TimelineRow> rows = {};
  int64_t end_ns = 0;  ///< it begins at 0
};

/// "cpu" for stream 0 of device cpu, "cpu.1" for stream 1.
std::string stream_name(const std::string& device, uint32_t stream);

/// Lines of `columns` characters of time, each naming the kind that runs in the middle of its
/// slice by its letter (task_kind.hpp), `.` for idle. At most `most_rows` rows.
std::string timeline_text(const Timeline& timeline, size_t columns, size_t most_rows);
/// "F forward, X dX, ...": what the letters mean, a line.
std::string timeline_legend();

/// As text of an XML or HTML element or attribute, without control characters.
std::string xml_text(const std::string& text);

std::string timeline_svg(const Timeline& timeline);

/// Trace Event Format, times in microseconds: chrome://tracing, ui.perfetto.dev.
std::string timeline_trace(const Timeline& timeline);

}  // namespace gradrack
