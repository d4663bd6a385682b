// SPDX-License-Identifier: Apache-2.0
// What lies in a folder: see folder.hpp.
#include "core/base/folder.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

namespace gradrack {
namespace {

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

Status folder_error(int reason) {
  if (reason == ENOENT || reason == ENOTDIR) return not_found("no such folder");
  return Status(reason == ENOMEM ? GR_OUT_OF_MEMORY : GR_IO,
                "cannot be read: " + std::generic_category().message(reason));
}

}  // namespace

Result<std::vector<std::string>> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  if (open == nullptr) return folder_error(errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return folder_error(errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_in_or_none(const std::string& folder) {
  auto names = names_in(folder);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

std::string install_prefix() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : program.parent_path().parent_path().string();
}

}  // namespace gradrack
