// SPDX-License-Identifier: Apache-2.0
// The threads of this process by number and name, from /proc.
//
// Used by the probe and by lifecycle. It tells who is there, not who started it: names are those
// that the system shows, at most 15 bytes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gradrack {

struct ThreadName {
  pid_t id = 0;
  std::string name;
};

/// Every thread that is alive now, the calling one included, by number. [any]
std::vector<ThreadName> threads_alive();

/// Those alive now that are not in `before`. A thread that just ended may still be listed by the
/// system for a moment, so newcomers get a few milliseconds to go. [any]
std::vector<ThreadName> threads_since(const std::vector<ThreadName>& before);

/// "1 thread ('worker')", "3 threads ('a', 'b', 'b')".
std::string thread_list(const std::vector<ThreadName>& threads);

}  // namespace gradrack
