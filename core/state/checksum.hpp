// SPDX-License-Identifier: Apache-2.0
// Checksum: XXH3, 128 bits, of bytes that come in parts.
//
// Tells damaged and torn files from whole ones, at the speed of memory, so that a save costs no
// more than its writing. Against somebody who wants two files to look alike it is no help: plugin
// libraries have plugin/digest.hpp for that. `xxhsum -H2 FILE` gives the same digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.hpp"

namespace gradrack {

class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  ~Checksum();

  void add(const void* data, size_t bytes);
  int64_t bytes() const { return bytes_; }
  /// Of all that was added: 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  int64_t bytes_ = 0;
};

/// Of a whole file. GR_NOT_FOUND, GR_IO: with path and reason. [any]
Result<Checksum> checksum_of_file(const std::string& path);

}  // namespace gradrack
