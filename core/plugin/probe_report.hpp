// SPDX-License-Identifier: Apache-2.0
// What the probe process says, as lines on a pipe and as JSON in the cache.
//
// Shared by gradrack-probe, which writes it, and by probe.cpp and the cache, which read it. Lines:
// `stage WORDS` before each step that can end the process, then one line of JSON. Invariant:
// anything else on the pipe is no report; the reader takes no number or text unchecked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/probe.hpp"

namespace gradrack {

/// A file and what tells that it changed. Nanoseconds since 1970.
struct FileStamp {
  std::string path;
  int64_t modified = 0;
  int64_t changed = 0;
  int64_t size = -1;
  int64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

/// The file as it is now; nothing when it cannot be looked at.
std::optional<FileStamp> stamp_file(const std::string& path);

/// A verdict and what it rests on.
struct ProbeReport {
  Verdict verdict;
  /// Whether the verdict can be kept: false for what the system's loader said, which depends on
  /// other files than those below.
  bool lasting = true;
  std::vector<FileStamp> libraries;  ///< that the library pulled in
};

/// One line, without a line break. Bytes that are not UTF-8 are replaced.
std::string report_to_json(const ProbeReport& report);

/// The reverse; nothing when the text is not such a line. An error code that no Status has is no
/// report either.
std::optional<ProbeReport> report_from_json(std::string_view text);

}  // namespace gradrack
