// SPDX-License-Identifier: Apache-2.0
// Where plugin libraries may come from.
//
// First step of plugin/. Order: --plugin-path, the run file's plugins.path, GRADRACK_PLUGIN_PATH,
// the folder beside the program. Invariant: the current folder is never searched unless somebody
// named it, and a privileged process ignores the environment.
#pragma once

#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/base/status.hpp"

namespace gradrack {

/// One folder, absolute, and who named it ("--plugin-path", "plugins.path", ...).
struct SearchFolder {
  std::string path;
  std::string origin;
};

/// Does the process run with rights that its user does not have (set-user-id, capabilities)?
bool has_raised_privileges();

/// `path` with its links resolved; itself where that fails.
std::string canonical_or_same(const std::string& path);

/// The folders in order, without repeats. A variable that is ignored because the privileges are
/// `raised` is an event ("plugin_path_ignored").
std::vector<SearchFolder> search_folders(const std::vector<std::string>& command_line,
                                         const std::vector<std::string>& run_file,
                                         EventSink& events, bool raised = has_raised_privileges());

/// Libraries (`*.so`) of a folder, sorted by name. GR_NOT_FOUND, GR_IO.
Result<std::vector<std::string>> library_files(const std::string& folder);

/// Manifests of a folder and of the folders directly in it, sorted. GR_NOT_FOUND, GR_IO; a folder
/// within that cannot be read is passed over.
Result<std::vector<std::string>> manifest_files(const std::string& folder);

}  // namespace gradrack
