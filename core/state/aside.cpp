// SPDX-License-Identifier: Apache-2.0
// Moving aside: see aside.hpp.
#include "core/state/aside.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/state/atomic_file.hpp"

namespace gradrack {

namespace fs = std::filesystem;

std::string first_free(const std::string& path) {
  const fs::path old(path);
  for (int k = 1;; ++k) {
    const fs::path name = fmt::format("{}.{}{}", old.stem().string(), k, old.extension().string());
    const fs::path aside = old.parent_path() / name;
    std::error_code failed;
    if (!fs::exists(fs::symlink_status(aside, failed))) return aside.string();
  }
}

Result<std::string> move_aside(const std::string& path) {
  const std::string aside = first_free(path);
  std::error_code failed;
  fs::rename(path, aside, failed);
  if (failed) return file_error("move aside", path, failed.value());
  return aside;
}

}  // namespace gradrack
