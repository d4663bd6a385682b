// SPDX-License-Identifier: Apache-2.0
// One run of gradrack-probe: started with nothing inherited, watched, ended on time.
//
// Below probe.cpp. Invariant: when run_probe_process returns, the child and its group are gone. It
// does not say what an end means for the library.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// How a child ended and what it wrote.
struct ProcessEnd {
  bool timed_out = false;
  int exit_code = -1;  ///< when it ended by itself, else -1
  int signal = 0;      ///< when a signal ended it (not ours after the time limit)
  std::string report;  ///< what came on descriptor 3
  std::string noise;   ///< the first 4 KiB of its stdout and stderr
};

/// Runs `program` with `arguments`. Descriptor 0 is empty, 1 and 2 go to `noise`, 3 is the report;
/// no other is open. Signals are as a fresh process has them. GR_IO when it cannot be started.
Result<ProcessEnd> run_probe_process(const std::string& program,
                                     const std::vector<std::string>& arguments,
                                     int64_t time_limit_ms);

}  // namespace gradrack
