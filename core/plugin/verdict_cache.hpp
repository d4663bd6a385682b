// SPDX-License-Identifier: Apache-2.0
// Verdicts of earlier probes, one private file each.
//
// Folder: ProbeSettings.cache_folder, else as cache_folder.hpp says. A verdict holds while the
// library (path, times, size, inode, sha256), everything that it pulled in, this program, the probe
// program, the CPU and the loader's variables are what they were. Invariant: a folder or file that
// somebody else can write is never believed, and a file is replaced whole. The folder may be
// removed at any time.
#pragma once

#include <optional>
#include <string>

#include "core/base/events.hpp"
#include "core/plugin/probe_report.hpp"

namespace gradrack {

/// What a verdict is tied to.
struct VerdictKey {
  FileStamp library;
  std::string sha256;  ///< may be empty
  std::string host;    ///< host_identity() and the stamp of the probe program
};

/// How long a refusal holds when the library died or hung: an hour. It may have been the machine.
inline constexpr int64_t kDeathSeconds = 3600;

/// This program's build, the CPU's features and the variables that steer the system's loader.
const std::string& host_identity();

class VerdictCache {
 public:
  /// Makes the folder (0700) where it is missing. One that cannot be used is an event
  /// "verdict_cache", and the cache is then empty and keeps nothing.
  VerdictCache(std::string folder, EventSink& events);

  /// The verdict that still holds. A file that makes no sense is an event "verdict_cache".
  std::optional<Verdict> find(const VerdictKey& key);

  /// Keeps a report; `seconds` 0: until something changes. Failure is an event.
  void keep(const VerdictKey& key, const ProbeReport& report, int64_t seconds);

 private:
  std::string file_of(const VerdictKey& key) const;
  void complain(const std::string& path, const std::string& reason);

  std::string folder_;  ///< empty: no cache
  EventSink& events_;
};

}  // namespace gradrack
