// SPDX-License-Identifier: Apache-2.0
// Who else could have written this file? The first look at a plugin library or manifest.
//
// A plugin runs with the user's rights, so a file that others may replace is their program, not
// the user's. Invariant: the bytes handed out are those of the very file that was judged (one open
// file for both). It judges the file and its folder, not the folders above.
#pragma once

#include <sys/stat.h>

#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// The file `path` with mode and owner `file`, in a folder with `folder`, for the user `me`:
/// GR_FAILED_PRECONDITION (Area::kPlugin) when group or others may write the file, or the folder
/// unless it is sticky, or when another user than `me` and root owns either. The text says whose
/// or which mode, and what to do. [any]
Status check_trust(const std::string& path, const struct stat& file, const struct stat& folder,
                   uid_t me);

/// The same for a folder alone, as it is on disk. GR_NOT_FOUND, GR_IO.
Status check_folder_trust(const std::string& folder);

/// All bytes of a regular file, after check_trust unless `allow_writable`. GR_NOT_FOUND, GR_IO,
/// GR_UNSUPPORTED (no regular file). The text finishes the sentence "PATH: ...".
Result<std::string> read_trusted(const std::string& path, bool allow_writable);

}  // namespace gradrack
