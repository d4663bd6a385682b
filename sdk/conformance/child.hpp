// SPDX-License-Identifier: Apache-2.0
// The child's side: runs cases in this process and reports each with a JSON line.
//
//   {"begin": ID}   {"end": ID, "verdict": "pass", "text": "", "facts": {...}, "exits": false}
// Invariant: the begin line is out before the case runs, so that the parent knows which case a dead
// child died in. Without a report descriptor the lines are for people (--in-process).
#pragma once

#include <string>
#include <vector>

#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

struct ChildRequest {
  Target target;
  Settings settings;
  std::vector<std::string> ids;
  int report_fd = -1;  ///< -1: text on stdout
};

/// Runs the cases in order and ends the process: by exit() after a case with must_exit, else
/// without running what libraries left for the end. [main]
[[noreturn]] void run_child(const ChildRequest& request);

/// What a library says of itself, as one JSON line on `report_fd`: {"id", "version", "abi_minor",
/// "factories": [{"kind", "name", "version", "options": [...]}]} or {"error": TEXT}, and
/// "options_error" where `settings.sets` do not fit. Ends the process.
[[noreturn]] void describe_child(const ChildRequest& request);

}  // namespace gradrack::conform
