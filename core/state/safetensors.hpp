// SPDX-License-Identifier: Apache-2.0
// Safetensors files: named dense tensors with string metadata, the form in which weights travel.
//
// Layout: 8 bytes N (little-endian), N bytes of JSON, then the tensors' bytes (little-endian)
// without gaps (https://github.com/huggingface/safetensors, "Format"). Invariant: a file that
// opened has every tensor inside its bytes, each byte belongs to exactly one tensor, and shapes
// agree with byte ranges; anything else is refused with path and reason. It does not convert
// dtypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/state/atomic_file.hpp"
#include "gradrack/tensor.h"

namespace gradrack {

using TextMap = std::map<std::string, std::string, std::less<>>;

/// A tensor of a file; its bytes are [begin, end) of the data section.
struct SafetensorsEntry {
  std::string name;
  gr_dtype_t dtype = 0;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// A whole file in memory. Reading it in one go, rather than mapping it, means that a file which
/// somebody cuts meanwhile is an error and not a signal.
class SafetensorsFile {
 public:
  /// Reads and checks `path`. GR_NOT_FOUND: no such file. GR_IO: it cannot be read, is cut, or is
  /// no well-formed file; always with path and reason. GR_OUT_OF_MEMORY. [any]
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  /// In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const TextMap& metadata() const { return metadata_; }
  /// The tensor of that name, or nullptr.
  const SafetensorsEntry* find(std::string_view name) const;
  /// The tensor's bytes in this machine's byte order. They may lie at any address: copy them, do
  /// not cast. Valid as long as this object.
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  /// Copies tensor `name` to `out`, which has room for `shape` elements of `dtype`. GR_NOT_FOUND:
  /// no such tensor (the nearest name is said). GR_INVALID_ARGUMENT: dtype or shape differ. [any]
  Status copy_to(std::string_view name, gr_dtype_t dtype, std::span<const int64_t> shape,
                 void* out) const;

 private:
  std::string path_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
  TextMap metadata_;
  std::unique_ptr<std::byte[]> data_;
};

/// What `path` says of itself; its tensors are not read. Errors as SafetensorsFile::open. [any]
Result<TextMap> safetensors_metadata(const std::string& path);

/// A tensor to write: dense, row-major, in this machine's byte order. The caller keeps `data`.
struct SafetensorsTensor {
  std::string name;
  gr_dtype_t dtype = 0;
  std::vector<int64_t> shape;
  const void* data = nullptr;  ///< may be null when there are no elements
};

/// Writes `tensors` and `metadata` to `path`, which appears whole or not at all. Tensors lie widest
/// element first, then by name, and data begins on a multiple of 8, so each is aligned; equal input
/// gives equal bytes. GR_INVALID_ARGUMENT: a name twice, reserved or not UTF-8; a dtype the format
/// lacks. GR_IO: with path and reason. [any]
Status write_safetensors(const std::string& path, std::vector<SafetensorsTensor> tensors,
                         const TextMap& metadata = {}, const Writing& how = {});

/// "F32", or nullptr when the format has no such dtype.
const char* safetensors_dtype_name(gr_dtype_t dtype);

/// Reverses the bytes of each element: file order on a machine of the other byte order.
void reverse_elements(std::span<std::byte> bytes, size_t element_bytes);

}  // namespace gradrack
