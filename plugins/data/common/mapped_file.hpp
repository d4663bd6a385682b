// SPDX-License-Identifier: Apache-2.0
// MappedFile: a regular file as bytes in memory, read by the system as they are looked at.
//
// Invariant: bytes() is what the file held when it was opened. A file that is cut while it is
// mapped ends the process at the next look (SIGBUS), so whoever keeps data replaces files whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace corpus {

class MappedFile {
 public:
  /// `option` is what names the file, for messages. Throws GR_NOT_FOUND, GR_IO. [main]
  MappedFile(std::string path, const char* option);
  /// Of an open file, which is closed; `path` is for messages.
  MappedFile(int file, std::string path, const char* option);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace corpus
