// SPDX-License-Identifier: Apache-2.0
// Lines of text: see timeline.hpp.
#include "core/schedule/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/task_kind.hpp"

namespace gradrack {
namespace {

std::string row_line(const TimelineRow& row, int64_t end_ns, size_t columns) {
  std::string line(columns, '.');
  size_t at = 0;
  for (size_t column = 0; column < columns; ++column) {
    const auto middle =
        static_cast<int64_t>((static_cast<double>(column) + 0.5) * static_cast<double>(end_ns) /
                             static_cast<double>(columns));
    while (at < row.spans.size() && row.spans[at].end_ns <= middle) ++at;
    if (at == row.spans.size()) break;
    if (row.spans[at].start_ns > middle) continue;
    line[column] = task_kind(row.spans[at].kind).letter;
  }
  return line;
}

}  // namespace

std::string stream_name(const std::string& device, uint32_t stream) {
  return stream == 0 ? device : fmt::format("{}.{}", device, stream);
}

std::string timeline_text(const Timeline& timeline, size_t columns, size_t most_rows) {
  std::string out;
  for (size_t k = 0; k < std::min(timeline.rows.size(), most_rows); ++k) {
    const TimelineRow& row = timeline.rows[k];
    out += fmt::format("{:<12.12} {}\n", row.name, row_line(row, timeline.end_ns, columns));
  }
  if (timeline.rows.size() > most_rows) {
    out += fmt::format("... {} more rows\n", timeline.rows.size() - most_rows);
  }
  return out;
}

std::string timeline_legend() {
  return "F forward, X dX, W dW, U update, R reduce, C copy, . idle\n";
}

}  // namespace gradrack
