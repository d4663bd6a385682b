// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP: the first asks for a stop, the second ends the process.
//
// Base of the flow: the training loop, evaluation, planning and sampling look at it between steps,
// and plugins ask through the host extension gr.cancel/1. Invariant: the handler does nothing but
// store the number and set the alarm of the grace time; what was in place before is put back when
// the last StopSignals is gone.
#pragma once

#include <cstdint>

namespace gradrack {

/// The number of the first stop signal that arrived while StopSignals were in place, else 0. [any]
int stop_signal();

/// While one lives, the first SIGINT, SIGTERM or SIGHUP asks for a stop at the end of the step, and
/// a second one ends the process at once. Signals that were ignored (nohup, background jobs) stay
/// so. SIGPIPE is ignored: a reader of stdout that goes away is an error of writing, not the end.
class StopSignals {
 public:
  StopSignals();  // [main]
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();
};

/// From the first stop signal on the process has that long to come to its end; then it ends as by a
/// second signal, with a line on stderr. 0: no limit. [main]
void set_stop_grace(int64_t seconds);

}  // namespace gradrack
