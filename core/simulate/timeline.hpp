// SPDX-License-Identifier: Apache-2.0
// A simulation as a picture: lines of text, an SVG file, a trace for Chrome or Perfetto.
//
// Last step of simulate/. One row a stream of a device, then one a link. Invariant: every task of
// the table is in the SVG and in the trace once, with its own start and end.
#pragma once

#include <string>
#include <vector>

#include "core/simulate/simulation.hpp"

namespace gradrack {

/// One row of a picture.
struct TimelineRow {
  std::string name;             ///< "device0", "device0.1" for stream 1, "link 0to1"
  std::vector<uint32_t> tasks;  ///< by start
};

/// Rows of streams and links that have tasks.
std::vector<TimelineRow> timeline_rows(const SimTable& table, const Schedule& schedule,
                                       const Simulation& simulation);

/// Lines of `columns` characters of time, each naming the kind that runs in the middle of its
/// slice: F, X (dX), W (dW), U(pdate), R(educe), C(opy), `.` for idle. At most `most_rows` rows.
std::string timeline_text(const SimTable& table, const Schedule& schedule,
                          const Simulation& simulation, size_t columns, size_t most_rows);

std::string timeline_svg(const SimTable& table, const Schedule& schedule,
                         const Simulation& simulation);

/// Trace Event Format, times in microseconds: chrome://tracing, ui.perfetto.dev.
std::string timeline_trace(const SimTable& table, const Schedule& schedule,
                           const Simulation& simulation);

}  // namespace gradrack
