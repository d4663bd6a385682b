// SPDX-License-Identifier: Apache-2.0
// The files of a folder with a folder for each class.
//
// Invariant: classes and files are in the order of their names' bytes, whatever the file system
// gives, so that a class keeps its number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct LabelledFile {
  std::string path;
  std::string name;  // "class/file.png"
  int64_t label = 0;
  int64_t bytes = 0;
};

struct LabelledFiles {
  std::vector<std::string> classes;
  std::vector<LabelledFile> files;
};

/// Files whose names end in .png, .jpg or .jpeg. Throws GR_NOT_FOUND, GR_IO, and GR_OUT_OF_RANGE
/// where a class has none. `option`: for messages.
LabelledFiles list_labelled(const std::string& folder, const char* option,
                            const std::function<void()>& tick);
