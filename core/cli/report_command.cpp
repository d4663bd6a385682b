// SPDX-License-Identifier: Apache-2.0
// `gradrack report`: see report_command.hpp.
#include "core/cli/report_command.hpp"

#include <fmt/format.h>

#include "core/report/report.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {

Status run_report(const ReportRequest& request) {
  GR_ASSIGN(const RunRecord record, read_run_folder(request.folder, request.metrics_file));
  const std::string output =
      request.output.empty() ? request.folder + "/report.html" : request.output;
  const std::string page = run_report_html(record);
  GR_TRY(write_file(output, page));
  for (const std::string& note : record.notes) fmt::print("note: {}\n", note);
  fmt::print("{}: {} figures, {} events, {} bytes\n", output, record.series.size(),
             record.events.size(), page.size());
  return {};
}

}  // namespace gradrack
