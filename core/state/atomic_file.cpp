// SPDX-License-Identifier: Apache-2.0
// AtomicFile: see atomic_file.hpp. Plain POSIX calls, since streams hide errno.
#include "core/state/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace gradrack {
namespace {

// Fits the second cache, so that the sum finds there what was written.
constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr int kTemporaryNames = 100;

const char* remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return " (free some space, or choose another folder)";
    case EACCES:
    case EPERM:
    case EROFS:
      return " (check who may write there, or choose another folder)";
    default:
      return "";
  }
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status file_error(std::string_view action, const std::string& path, int error_number) {
  return {error_number == ENOENT ? GR_NOT_FOUND : GR_IO,
          fmt::format("cannot {} '{}': {}{}", action, path,
                      std::generic_category().message(error_number), remedy(error_number))};
}

Status sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};  // a folder may be writable but not readable
  const int failed = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;  // EINVAL: it cannot
  ::close(descriptor);
  return failed == 0 ? Status() : file_error("flush the folder of", path, failed);
}

Result<AtomicFile> AtomicFile::create(const std::string& path, const Writing& how) {
  // A few names, so that what a killed process of the same number left behind is no obstacle.
  for (int k = 0; k < kTemporaryNames; ++k) {
    std::string temporary = fmt::format("{}.{}-{}.tmp", path, ::getpid(), k);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return AtomicFile(path, std::move(temporary), descriptor, how);
    if (errno != EEXIST) return file_error("write", path, errno);
  }
  return io_error(fmt::format("cannot write '{}': {} files '{}.*.tmp' are in the way; remove them",
                              path, kTemporaryNames, path));
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(other.descriptor_),
      how_(std::move(other.how_)) {
  other.descriptor_ = -1;
  other.temporary_.clear();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status AtomicFile::append(const void* data, size_t bytes) {
  GR_CHECK(descriptor_ >= 0);
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, at, std::min(bytes, kBlockBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", path_, errno);
    if (how_.sum != nullptr) how_.sum->add(at, static_cast<size_t>(written));
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  GR_CHECK(descriptor_ >= 0);
  int failed = ::fsync(descriptor_) == 0 ? 0 : errno;
  if (::close(descriptor_) != 0 && failed == 0) failed = errno;
  descriptor_ = -1;
  if (failed == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) failed = errno;
  if (failed != 0) {
    discard();
    return file_error("write", path_, failed);
  }
  temporary_.clear();
  return how_.name == NameSync::kNow ? sync_folder_of(path_) : Status();
}

Status write_file(const std::string& path, std::string_view text, const Writing& how) {
  GR_ASSIGN(AtomicFile file, AtomicFile::create(path, how));
  GR_TRY(file.append(text));
  return file.commit();
}

Result<std::string> read_file(const std::string& path, int64_t most) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error("read", path, errno);
  std::string text;
  char block[1 << 14];
  int failed = 0;
  while (std::ssize(text) <= most) {
    const ssize_t got = ::read(descriptor, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed = errno;
    if (got <= 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  ::close(descriptor);
  if (failed != 0) return file_error("read", path, failed);
  if (std::ssize(text) <= most) return text;
  return io_error(fmt::format("'{}' has more than {} bytes: not what it should be", path, most));
}

}  // namespace gradrack
