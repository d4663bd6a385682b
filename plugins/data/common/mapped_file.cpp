// SPDX-License-Identifier: Apache-2.0
// MappedFile: see mapped_file.hpp.
#include "plugins/data/common/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gradrack/error.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

namespace {

int open_file(const std::string& path, const char* option) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const int reason = errno;
  gr::require(file >= 0, reason == ENOENT ? GR_NOT_FOUND : GR_IO, option, path, ": ",
              std::strerror(reason), ": set `", option, "` to a file that can be read");
  return file;
}

}  // namespace

MappedFile::MappedFile(std::string path, const char* option)
    : MappedFile(open_file(path, option), path, option) {}

MappedFile::MappedFile(int file, std::string path, const char* option) : path_(std::move(path)) {
  struct stat info = {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  void* at = MAP_FAILED;
  size_ = regular ? static_cast<size_t>(info.st_size) : 0;
  if (size_ > 0) at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int map_reason = errno;
  ::close(file);
  gr::require(regular, GR_IO, option, path_, ": is not a regular file");
  if (size_ == 0) return;
  gr::require(at != MAP_FAILED, GR_IO, option, path_,
              ": cannot be mapped: ", std::strerror(map_reason));
  data_ = static_cast<const std::byte*>(at);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace corpus
