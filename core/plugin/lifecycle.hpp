// SPDX-License-Identifier: Apache-2.0
// The end of plugins: every instance destroyed, then every library stopped, then no call any more.
//
// Last step of plugin/, called by main() when the command is over. What was entered is remembered
// here for the life of the process, apart from any registry, and never freed: libraries stay
// mapped. Invariant: `stop` is called at most once a library, in the reverse order of loading, on
// the main thread, with no instance of that library alive; after it, nothing of any library is
// called, from an exit handler least of all.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/events.hpp"
#include "core/base/status.hpp"
#include "gradrack/plugin.h"

namespace gradrack {

/// Time that the stop of one library may take.
inline constexpr int64_t kStopDeadlineMs = 5000;

/// Remembers a library that was entered and is in use; one that is known already stays as it is.
/// `host` is the table that make_host_table() gave it; where calls are checked, the library's calls
/// through it after the stop are violations. `stop` may be NULL. [main]
void library_entered(const std::string& path, const gr_host_t* host,
                     int32_t (*stop)(int64_t, gr_error_t*));

/// Counts the living instances of a library. [main]
void instance_made(const std::string& library_path);
void instance_gone(const std::string& library_path);

/// GR_FAILED_PRECONDITION once plugins were stopped: nothing may call them then.
Status plugins_still_run();

/// What is left of plugins after their stop.
struct PluginEnd {
  /// Threads of theirs that still run; the process should end without running exit handlers, under
  /// which they would lose their data.
  bool threads_left = false;
};

/// Stops every library that was entered. Problems are events, never errors: "instances_left"
/// (that library is not stopped), "stop_failed", "threads_left" with their names. A library that
/// overruns the deadline is the event "stop_overdue" with the names of the threads alive, and the
/// process ends at once with `exit_code`, for its stop cannot be left otherwise. [main]
PluginEnd stop_plugins(int64_t deadline_ms, int exit_code, EventSink& events);

/// stop_plugins with the log as listener, then the way out of main(): returns `exit_code`, or ends
/// the process with it where threads are left. [main]
int end_plugins(int exit_code);

}  // namespace gradrack
