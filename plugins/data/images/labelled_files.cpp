// SPDX-License-Identifier: Apache-2.0
// Labelled files: see labelled_files.hpp.
#include "labelled_files.hpp"

#include <algorithm>
#include <filesystem>

#include "gradrack/error.hpp"

namespace fs = std::filesystem;
namespace gr = gradrack::sdk;

namespace {

/// What lies in a folder, in the order of the names.
std::vector<fs::directory_entry> entries(const fs::path& folder, const char* option) {
  std::error_code error;
  std::vector<fs::directory_entry> found;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    found.push_back(*at);
  }
  const bool missing = error == std::errc::no_such_file_or_directory;
  gr::require(!error, missing ? int32_t{GR_NOT_FOUND} : int32_t{GR_IO}, option, folder.string(),
              ": ", error.message(), ": set `", option,
              "` to a folder with a folder for each class");
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
  for (const fs::directory_entry& entry : entries(folder, option)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    const auto label = static_cast<int64_t>(all.classes.size());
    const size_t before = all.files.size();
    for (const fs::directory_entry& file : entries(entry.path(), option)) {
      if (!is_picture(file.path()) || !file.is_regular_file()) continue;
      all.files.push_back({file.path().string(), name + "/" + file.path().filename().string(),
                           label, static_cast<int64_t>(file.file_size())});
      if (all.files.size() % 1024 == 0) tick();
    }
    gr::require(all.files.size() > before, GR_OUT_OF_RANGE, option, entry.path().string(),
                ": there is no .png, .jpg or .jpeg in this class");
    all.classes.push_back(name);
  }
  gr::require(!all.classes.empty(), GR_OUT_OF_RANGE, option, folder,
              ": has no folders, wanted one for each class");
  return all;
}
