// SPDX-License-Identifier: Apache-2.0
// Runs gradrack-conform as a vendor would, and reads its JSON report.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace gradrack::test {

struct KitRun {
  int exit_code = -1;
  std::string output;  ///< stdout
  std::string errors;  ///< stderr
};

/// Runs the kit with these words.
KitRun run_kit(const std::vector<std::string>& arguments);

/// Ids of the cases of a verdict ("fail") in a JSON report. A report that is none fails the test.
std::set<std::string> ids_with(const KitRun& run, const std::string& verdict);

/// Text of one case in a JSON report, "" when it is not there.
std::string text_of(const KitRun& run, const std::string& id);

/// GRADRACK_WRONG_DIR/NAME.so
std::string wrong(const std::string& name);

}  // namespace gradrack::test
