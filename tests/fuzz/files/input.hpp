// SPDX-License-Identifier: Apache-2.0
// For fuzz targets of readers that take a path: the input as a file that only this process has.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gradrack/error.hpp"

namespace gradrack::fuzz {

class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size) : file_(memfd_create("input", 0)) {
    if (file_ < 0 || write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~InputFile() { close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// Runs a reader that may refuse its input, with words and a known code, and do nothing else.
template <typename Body>
void refuse_or_read(Body&& body) {
  try {
    body();
  } catch (const sdk::Error& error) {
    if (error.what()[0] == '\0' || error.code() <= GR_OK || error.code() > GR_INTERNAL)
      std::abort();
  } catch (const std::bad_alloc&) {
    std::abort();  // no input of a few kB may ask for more memory than there is
  }
}

}  // namespace gradrack::fuzz
