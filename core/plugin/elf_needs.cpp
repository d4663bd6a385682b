// SPDX-License-Identifier: Apache-2.0
// Where the loader looks: see elf_needs.hpp. Source: ld.so(8) of glibc 2.36.
#include "core/plugin/elf_needs.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCache = "/etc/ld.so.cache";

struct Folder {
  std::string path;
  const char* origin;
};

void add_list(std::string_view list, const char* separators, const char* origin,
              const std::string& own_folder, std::vector<Folder>* out) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(separators), list.size());
    std::string folder(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    for (const char* word : {"${ORIGIN}", "$ORIGIN"}) {
      const size_t at = folder.find(word);
      if (at != std::string::npos) {
        folder.replace(at, std::string_view(word).size(), own_folder);
        break;
      }
    }
    if (!folder.empty()) out->push_back({fs::path(folder).lexically_normal().string(), origin});
  }
}

std::vector<Folder> folders_of(const ElfFile& elf, const std::string& path) {
  std::vector<Folder> folders;
  const std::string own = fs::path(path).parent_path().string();
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  if (variable != nullptr) add_list(variable, ":;", "LD_LIBRARY_PATH", own, &folders);
  add_list(elf.runpath, ":", "its RUNPATH", own, &folders);
#if defined(__x86_64__)
  const char* system[] = {"/lib/x86_64-linux-gnu",
                          "/usr/lib/x86_64-linux-gnu",
                          "/lib64",
                          "/usr/lib64",
                          "/lib",
                          "/usr/lib"};
#else
  const char* system[] = {"/lib/aarch64-linux-gnu",
                          "/usr/lib/aarch64-linux-gnu",
                          "/lib64",
                          "/usr/lib64",
                          "/lib",
                          "/usr/lib"};
#endif
  for (const char* folder : system) folders.push_back({folder, "system"});
  return folders;
}

// The cache keeps each file name as a text of its own, so a search for the text is enough.
bool in_cache(const std::string& name) {
  static const auto* cache = [] {
    std::ifstream file(kCache, std::ios::binary);
    return new std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return cache->find(std::string(1, '\0') + name + std::string(1, '\0')) != std::string::npos;
}

bool is_there(const std::string& name, const std::vector<Folder>& folders) {
  std::error_code error;
  if (name.find('/') != std::string::npos) return fs::exists(name, error);
  for (const Folder& folder : folders) {
    if (fs::exists(fs::path(folder.path) / name, error)) return true;
  }
  return in_cache(name);
}

}  // namespace

std::vector<std::string> loader_folders(const ElfFile& elf, const std::string& path) {
  std::vector<std::string> texts;
  for (const Folder& folder : folders_of(elf, path)) {
    texts.push_back(folder.path + " (" + folder.origin + ")");
  }
  return texts;
}

std::vector<std::string> libraries_not_seen(const ElfFile& elf, const std::string& path) {
  const std::vector<Folder> folders = folders_of(elf, path);
  std::vector<std::string> missing;
  for (const std::string& name : elf.needed) {
    if (!is_there(name, folders)) missing.push_back(name);
  }
  return missing;
}

std::string looked_for_text(const ElfFile& elf, const std::string& path) {
  std::vector<std::string> named;
  for (const Folder& folder : folders_of(elf, path)) {
    if (std::string_view(folder.origin) == "system") continue;
    named.push_back(folder.path + " (" + folder.origin + ")");
  }
  named.push_back("the system's folders");
  return " (looked for in " + join(named) + ")";
}

}  // namespace gradrack
