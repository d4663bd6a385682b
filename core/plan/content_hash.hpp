// SPDX-License-Identifier: Apache-2.0
// ContentHash: 128 bits that stand for a content, for the keys of plans and of segments.
//
// The first half of a SHA-256 over fields that each carry their length, so that no two lists of
// fields read as one. Invariant: equal contents give equal digests in every process; that two
// others do is left to 2^-64.
#pragma once

#include <nettle/sha2.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/graph/graph.hpp"

namespace gradrack {

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Digest&) const = default;
  /// 32 hexadecimal digits.
  std::string text() const;
};

/// For unordered containers: the bits are uniform already.
struct DigestHash {
  size_t operator()(const Digest& digest) const { return static_cast<size_t>(digest.low); }
};

class ContentHash {
 public:
  ContentHash();
  ContentHash& add(std::string_view text) { return add_bytes(text.data(), text.size()); }
  ContentHash& add(int64_t number);
  ContentHash& add_bytes(const void* data, size_t bytes);
  /// Of all that was added; ends this object.
  Digest digest();

 private:
  sha256_ctx context_;
};

/// Of a graph's text and its constants: operators, attributes, wiring, types, sources, results.
Digest hash_of(const Graph& graph);

}  // namespace gradrack
