// SPDX-License-Identifier: Apache-2.0
// The command line of gradrack-conform.
#pragma once

#include <string>
#include <vector>

#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

/// Exit codes, documented in --help and docs/conformance.md: numbers never change their meaning.
enum ExitCode : int {
  kAllPass = 0,   ///< every case that applies passes
  kSomeFail = 1,  ///< at least one case fails
  kUsage = 2,     ///< command line: unknown option or case, options that do not fit the plugin
  kNoLoad = 3,    ///< the library is not there or cannot be loaded
  kKitFault = 4,  ///< the kit itself: it cannot start a child or write the report
};

struct Arguments {
  std::string program;
  std::string library;
  Settings settings;
  std::string kind, name;          ///< of the one factory to try; "": all
  std::vector<std::string> cases;  ///< ids; empty: all
  std::string batch;
  std::string filter = "*";
  int first_level = 0, last_level = 5;
  std::string format = "text";
  std::string output;    ///< file; "": stdout
  std::string coverage;  ///< "markdown" or ""
  double limit_s = 30;
  bool list = false;
  bool quiet = false;
  bool in_process = false;
  // Between parent and child.
  bool describe = false;
  bool run_cases = false;
  int report_fd = -1;
};

/// Parses. When the answer is false the program ends with `exit_code` (help, or wrong usage).
bool parse_arguments(int argc, char** argv, Arguments* arguments, int* exit_code);

}  // namespace gradrack::conform
