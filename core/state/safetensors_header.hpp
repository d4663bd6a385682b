// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: parse and check, or compose. Part of state/safetensors.
//
// Pure functions over bytes, so that each way to be wrong is tested without files. Invariant: what
// parse returns covers the data section exactly. Messages do not name the file: the caller adds
// that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/state/safetensors.hpp"

namespace gradrack {

/// The limit of the format's first implementation; it keeps a broken length from asking for memory.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by begin, then end
  TextMap metadata;
};

/// Parses header `text` of a file with `data_bytes` bytes after it. GR_INVALID_ARGUMENT: not the
/// format's JSON, a name twice, a size that disagrees, holes, overlaps or bytes that belong to no
/// tensor. GR_IO: the data is cut.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, uint64_t data_bytes);

/// Length field and padded JSON for `tensors`, whose bytes follow each other in the given order.
Result<std::string> compose_safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                                               const TextMap& metadata);

/// Bytes of a tensor; GR_INVALID_ARGUMENT: a negative dim, or more bytes than 64 bits can count.
Result<uint64_t> safetensors_bytes(gr_dtype_t dtype, const std::vector<int64_t>& shape);

/// Text of a stranger's file in quotes for a message: control characters escaped, cut when long.
std::string in_quotes(std::string_view text);

}  // namespace gradrack
