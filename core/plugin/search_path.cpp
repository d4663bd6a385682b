// SPDX-License-Identifier: Apache-2.0
// Search folders: see search_path.hpp.
#include "core/plugin/search_path.hpp"

#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>

#include "core/base/folder.hpp"
#include "core/plugin/manifest.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

void add_folder(const std::string& folder, const char* origin, std::vector<SearchFolder>* out) {
  if (folder.empty()) return;
  std::error_code error;
  fs::path path = fs::weakly_canonical(fs::absolute(folder, error), error);
  if (error) path = folder;
  if (path.has_relative_path() && path.filename().empty()) path = path.parent_path();  // "a/"
  const bool seen = std::any_of(out->begin(), out->end(), [&](const SearchFolder& known) {
    return known.path == path.string();
  });
  if (!seen) out->push_back({path.string(), origin});
}

void add_environment(EventSink& events, bool raised, std::vector<SearchFolder>* out) {
  const char* value = std::getenv("GRADRACK_PLUGIN_PATH");
  if (value == nullptr || value[0] == '\0') return;
  if (raised) {
    events.emit({"plugin_path_ignored", Level::kWarn,
                 "GRADRACK_PLUGIN_PATH is ignored: this process runs with raised privileges"});
    return;
  }
  std::string_view rest = value;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    add_folder(std::string(rest.substr(0, colon)), "GRADRACK_PLUGIN_PATH", out);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
}

Result<std::vector<std::string>> files_of(const std::string& folder,
                                          const std::function<bool(const fs::path&)>& wanted) {
  GR_ASSIGN(const std::vector<std::string> names, names_in(folder));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const fs::path path = fs::path(folder) / name;
    if (wanted(path)) files.push_back(path.string());
  }
  return files;
}

}  // namespace

std::string canonical_or_same(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

bool has_raised_privileges() { return getauxval(AT_SECURE) != 0; }

std::vector<SearchFolder> search_folders(const std::vector<std::string>& command_line,
                                         const std::vector<std::string>& run_file,
                                         EventSink& events, bool raised) {
  std::vector<SearchFolder> folders;
  for (const std::string& folder : command_line) add_folder(folder, "--plugin-path", &folders);
  for (const std::string& folder : run_file) add_folder(folder, "plugins.path", &folders);
  add_environment(events, raised, &folders);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    add_folder((program.parent_path() / "../lib/gradrack/plugins").string(), "bundled", &folders);
  }
  return folders;
}

Result<std::vector<std::string>> library_files(const std::string& folder) {
  return files_of(folder, [](const fs::path& path) { return path.extension() == ".so"; });
}

Result<std::vector<std::string>> manifest_files(const std::string& folder) {
  const auto is_manifest = [](const fs::path& path) {
    return is_manifest_name(path.filename().string());
  };
  GR_ASSIGN(std::vector<std::string> files, files_of(folder, is_manifest));
  GR_ASSIGN(const std::vector<std::string> within, files_of(folder, [](const fs::path& path) {
              std::error_code error;
              return fs::is_directory(path, error);
            }));
  for (const std::string& inner : within) {
    const Result<std::vector<std::string>> more = files_of(inner, is_manifest);
    if (more.ok()) files.insert(files.end(), more->begin(), more->end());
  }
  return files;
}

}  // namespace gradrack
