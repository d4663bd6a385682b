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

/// The folders in order, without repeats. An ignored variable is an event ("plugin_path_ignored").
std::vector<SearchFolder> search_folders(const std::vector<std::string>& command_line,
                                         const std::vector<std::string>& run_file,
                                         EventSink& events);

/// Candidates (`*.so`) of a folder, sorted by name. GR_NOT_FOUND, GR_IO.
Result<std::vector<std::string>> library_files(const std::string& folder);

}  // namespace gradrack
