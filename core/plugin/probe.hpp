// SPDX-License-Identifier: Apache-2.0
// Trying a plugin library in a process of its own, before this one loads it.
//
// Between the checks of the file and load_library. The program `gradrack-probe` loads the library,
// reads its header, runs its entry and every factory's probe, and reports on a pipe; what kills it
// kills nobody else. The verdict is kept (verdict_cache.hpp). Invariant: whatever the library does,
// this returns within the time limit. gradrack-probe calls load_library of library.hpp, so that
// function must never call this one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/base/status.hpp"
#include "core/plugin/runtimes.hpp"

namespace gradrack {

/// One thing that a library can make.
struct Offer {
  std::string kind, name, version, help;
};

/// What is known of a library without loading it here.
struct Verdict {
  Status status;  ///< OK, or why the library is refused (Area::kPlugin)
  std::string id, version;
  uint32_t abi_minor = 0;
  std::vector<Offer> offers;
  bool cached = false;            ///< no process was started for it
  std::vector<Runtime> runtimes;  ///< that it maps: for check_runtimes before it is loaded
};

struct ProbeSettings {
  std::string program;        ///< gradrack-probe; empty: the one beside this program
  int64_t time_limit_ms = 0;  ///< for one library; 0: GRADRACK_PROBE_SECONDS, else 10 s
  bool use_cache = true;
  std::string cache_folder;  ///< empty: as verdict_cache.hpp says
};

/// Asks the cache, else a child process. `path` is absolute; `sha256` (hex, or empty where nobody
/// computed it) is part of what the cached verdict is tied to. Never fails by itself: the verdict's
/// status says why the library is refused. Events: "probe" (debug) for each process started,
/// "verdict_cache" where the cache cannot be used. [main]
Verdict probe_library(const std::string& path, const std::string& sha256,
                      const ProbeSettings& settings, EventSink& events);

/// gradrack-probe beside the running program, in ../bin or in ../libexec/gradrack; "" when it is
/// nowhere.
std::string find_probe_program();

}  // namespace gradrack
