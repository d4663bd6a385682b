// SPDX-License-Identifier: Apache-2.0
// Labelled files: see labelled_files.hpp.
#include "labelled_files.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include "gradrack/error.hpp"

namespace fs = std::filesystem;
namespace gr = gradrack::sdk;

namespace {

struct Close {
  void operator()(DIR* folder) const { closedir(folder); }
};

/// What lies in a folder, in the order of the names. By the system's calls: the constructors of
/// std::filesystem::directory_iterator end the program when there is no memory.
std::vector<fs::path> entries(const fs::path& folder, const char* option) {
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  if (open == nullptr && errno == ENOMEM) throw std::bad_alloc();
  const int error = open == nullptr ? errno : 0;
  gr::require(error == 0, error == ENOENT ? int32_t{GR_NOT_FOUND} : int32_t{GR_IO}, option,
              folder.string(), ": ", std::generic_category().message(error), ": set `", option,
              "` to a folder with a folder for each class");
  std::vector<fs::path> found;
  while (const dirent* entry = readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") found.push_back(folder / name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

}  // namespace

LabelledFiles list_labelled(const std::string& folder, const char* option,
                            const std::function<void()>& tick) {
  LabelledFiles all;
  for (const fs::path& entry : entries(folder, option)) {
    if (!fs::is_directory(entry)) continue;
    const std::string name = entry.filename().string();
    const auto label = static_cast<int64_t>(all.classes.size());
    const size_t before = all.files.size();
    for (const fs::path& file : entries(entry, option)) {
      if (!is_picture(file) || !fs::is_regular_file(file)) continue;
      all.files.push_back({file.string(), name + "/" + file.filename().string(), label,
                           static_cast<int64_t>(fs::file_size(file))});
      if (all.files.size() % 1024 == 0) tick();
    }
    gr::require(all.files.size() > before, GR_OUT_OF_RANGE, option, entry.string(),
                ": there is no .png, .jpg or .jpeg in this class");
    all.classes.push_back(name);
  }
  gr::require(!all.classes.empty(), GR_OUT_OF_RANGE, option, folder,
              ": has no folders, wanted one for each class");
  return all;
}
