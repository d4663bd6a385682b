// SPDX-License-Identifier: Apache-2.0
// plugins.lock: which plugin libraries a run may load, by the digest of their bytes.
//
// Written by `gradrack plugins lock`, checked by `gradrack plugins verify`, and held to by every
// run that has one beside its run file or names one (`plugins.lock`). Invariant: with a lock no
// code of a library runs, not even in a child process, before its bytes were found in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// One library of a lock.
struct LockedPlugin {
  std::string id;
  std::string file;  ///< name of the file, without its folder: installs differ in theirs
  std::string sha256;
  std::string version;
};

struct LockFile {
  std::string path;
  std::vector<LockedPlugin> plugins;  ///< no two with one file name

  /// The entry of that file name, or nullptr.
  const LockedPlugin* find(std::string_view file) const;

  /// May the library at `library_path` with these bytes be loaded? GR_FAILED_PRECONDITION
  /// (Area::kPlugin): it is not listed, or its bytes are others. Ends the sentence "PATH: ...".
  Status check(const std::string& library_path, const std::string& sha256) const;

  /// Is the id of a listed library still the one that was locked? As check.
  Status check_id(const std::string& library_path, const std::string& id) const;
};

/// Reads `text`. GR_INVALID_ARGUMENT with file, line and column. Area::kConfig. [any]
Result<LockFile> parse_lock_file(std::string_view text, const std::string& path);

/// Reads a file; GR_NOT_FOUND, GR_IO, or as parse_lock_file.
Result<LockFile> load_lock_file(const std::string& path);

/// YAML that parse_lock_file reads back, sorted by file name.
std::string lock_file_text(LockFile lock);

}  // namespace gradrack
