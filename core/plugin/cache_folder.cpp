// SPDX-License-Identifier: Apache-2.0
// The folder for caches: see cache_folder.hpp.
#include "core/plugin/cache_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/base/folder.hpp"
#include "core/plugin/search_path.hpp"

namespace gradrack {

namespace fs = std::filesystem;

std::string default_cache_folder() {
  if (has_raised_privileges()) return "";
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string own = variable("GRADRACK_CACHE_DIR"); !own.empty()) return own;
  // "All paths must be absolute; a relative one is to be ignored" (XDG base directories).
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/') {
    return xdg + "/gradrack";
  }
  const std::string home = variable("HOME");
  return home.empty() || home[0] != '/' ? "" : home + "/.cache/gradrack";
}

std::string exposure(const struct stat& info) {
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if ((info.st_mode & 022) != 0) return "others can write it";
  return "";
}

Status make_private_folder(const std::string& folder) {
  std::error_code error;
  const fs::path parent = fs::path(folder).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  const bool made = mkdir(folder.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return io_error(std::strerror(errno));
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) return io_error(std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return io_error("it is no folder");
  const std::string exposed = exposure(info);
  return exposed.empty() ? Status() : io_error(exposed);
}

void drop_oldest(const std::string& folder, const std::string& prefix, size_t most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code ignored;
  for (const std::string& name : names_in_or_none(folder)) {
    if (!name.starts_with(prefix)) continue;
    const fs::path path = fs::path(folder) / name;
    files.emplace_back(fs::last_write_time(path, ignored), path);
  }
  if (files.size() <= most) return;
  std::sort(files.begin(), files.end());
  for (size_t k = 0; k < files.size() / 2; ++k) fs::remove(files[k].second, ignored);
}

}  // namespace gradrack
