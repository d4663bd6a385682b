// SPDX-License-Identifier: Apache-2.0
// `gradrack report`: a run folder as one page.
#pragma once

#include <string>

#include "core/base/status.hpp"

namespace gradrack {

struct ReportRequest {
  std::string folder;
  std::string output;                          ///< "": report.html in the folder
  std::string metrics_file = "metrics.jsonl";  ///< in the folder
};

/// Writes the page, whole or not at all, and prints its path. [main]
Status run_report(const ReportRequest& request);

}  // namespace gradrack
