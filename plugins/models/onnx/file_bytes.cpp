// SPDX-License-Identifier: Apache-2.0
// Files of a model: see file_bytes.hpp. Each folder of a name is opened in the one before it,
// without following links, so that no change of the tree while it is walked leads out of it.
#include "file_bytes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "gradrack/error.hpp"

namespace gradrack::onnx {

namespace {

/// An open file or folder.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  int release() {
    const int number = number_;
    number_ = -1;
    return number;
  }
  void reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

std::vector<std::string> parts_of(const std::string& location, const std::string& who) {
  std::vector<std::string> parts;
  std::string part;
  bool good = !location.empty() && location.find('\0') == std::string::npos;
  for (size_t k = 0; k <= location.size() && good; ++k) {
    if (k < location.size() && location[k] != '/') {
      part.push_back(location[k]);
      continue;
    }
    good = !part.empty() && part != "..";
    if (part != ".") parts.push_back(part);
    part.clear();
  }
  sdk::require(good && !parts.empty(), GR_INVALID_ARGUMENT, "file", who, " is in '", location,
               "': wanted the name of a file below the model's folder, without '..'");
  return parts;
}

int open_below(const std::string& folder, const std::vector<std::string>& parts,
               const std::string& location, const std::string& who) {
  constexpr int kFolder = O_RDONLY | O_CLOEXEC | O_DIRECTORY;
  Descriptor at(::open(folder.c_str(), kFolder));
  for (size_t k = 0; k < parts.size() && at.number() >= 0; ++k) {
    const int flags = k + 1 < parts.size() ? kFolder : O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    at.reset(::openat(at.number(), parts[k].c_str(), flags | O_NOFOLLOW));
  }
  const int reason = errno;
  sdk::require(at.number() >= 0, reason == ENOENT ? GR_NOT_FOUND : GR_IO, "file", who, " is in ",
               folder, "/", location, ": ",
               reason == ELOOP ? "that is a link, and links are not followed: put the file itself "
                                 "there"
                               : std::strerror(reason));
  return at.release();
}

}  // namespace

FileBytes::FileBytes(const std::string& path, const char* option)
    : main_(path, option), option_(option) {}

std::string_view FileBytes::beside(const std::string& location, const std::string& who) {
  const auto known = others_.find(location);
  if (known != others_.end()) return known->second.text();
  const std::vector<std::string> parts = parts_of(location, who);
  std::string folder = std::filesystem::path(path()).parent_path().string();
  if (folder.empty()) folder = ".";
  const int file = open_below(folder, parts, location, who);
  corpus::MappedFile mapped(file, folder + "/" + location, option_);
  return others_.emplace(location, std::move(mapped)).first->second.text();
}

}  // namespace gradrack::onnx
