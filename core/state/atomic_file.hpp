// SPDX-License-Identifier: Apache-2.0
// AtomicFile: a file that appears under its name whole or not at all.
//
// Used by everything in state/ that must survive a kill or a full disk: weights, checkpoints, the
// copy of the configuration. Bytes go to a temporary file in the same folder; commit() flushes them
// to the device and renames. Invariant: until commit() returns OK the old file, if any, is
// untouched, and no path leaves a temporary file behind except a kill. It does not create folders.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/status.hpp"
#include "core/state/checksum.hpp"

namespace gradrack {

/// GR_IO (GR_NOT_FOUND for ENOENT): "cannot <action> '<path>': <text of errno>", with the remedy
/// where there is a plain one. [any]
Status file_error(std::string_view action, const std::string& path, int error_number);

/// When a file's name is flushed to the device: kLater is for a folder that is not yet in its place
/// and whose last file is committed with kNow.
enum class NameSync { kNow, kLater };

/// How a file is written besides its bytes.
struct Writing {
  Checksum* sum = nullptr;  ///< takes in the bytes of the file; not owned
  NameSync name = NameSync::kNow;
};

class AtomicFile {
 public:
  /// Opens the temporary file next to `path`. GR_IO, GR_NOT_FOUND: the folder is missing or closed.
  static Result<AtomicFile> create(const std::string& path, const Writing& how = {});
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // drops what was not committed

  /// Appends `bytes` bytes. GR_IO with the path and the reason, such as a full disk.
  Status append(const void* data, size_t bytes);
  Status append(std::string_view text) { return append(text.data(), text.size()); }
  /// fsync, rename over `path`, fsync of the folder unless that is for later. Call once.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor, const Writing& how)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        descriptor_(descriptor),
        how_(how) {}
  void discard();

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  Writing how_;
};

/// create, append, commit.
Status write_file(const std::string& path, std::string_view text, const Writing& how = {});

/// A whole file. GR_NOT_FOUND, GR_IO: with path and reason, or that it has more than `most` bytes.
Result<std::string> read_file(const std::string& path, int64_t most);

/// Makes a rename to `path` durable. File systems that cannot flush a folder are no error.
Status sync_folder_of(const std::string& path);

}  // namespace gradrack
