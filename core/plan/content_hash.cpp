// SPDX-License-Identifier: Apache-2.0
// ContentHash: see content_hash.hpp.
#include "core/plan/content_hash.hpp"

#include <fmt/format.h>

namespace gradrack {

std::string Digest::text() const { return fmt::format("{:016x}{:016x}", high, low); }

ContentHash::ContentHash() { sha256_init(&context_); }

ContentHash& ContentHash::add(int64_t number) {
  uint8_t bytes[8];
  for (int k = 0; k < 8; ++k)
    bytes[k] = static_cast<uint8_t>(static_cast<uint64_t>(number) >> (8 * k));
  sha256_update(&context_, sizeof bytes, bytes);
  return *this;
}

ContentHash& ContentHash::add_bytes(const void* data, size_t bytes) {
  add(static_cast<int64_t>(bytes));
  sha256_update(&context_, bytes, static_cast<const uint8_t*>(data));
  return *this;
}

Digest ContentHash::digest() {
  uint8_t bytes[16];
  sha256_digest(&context_, sizeof bytes, bytes);
  Digest out;
  for (int k = 0; k < 8; ++k) {
    out.high = out.high << 8 | bytes[k];
    out.low = out.low << 8 | bytes[8 + k];
  }
  return out;
}

Digest hash_of(const Graph& graph) {
  ContentHash hash;
  hash.add(dump(graph));
  for (const Value& value : graph.values()) {
    if (value.constant == nullptr) continue;
    const ConstantData& data = *value.constant;
    hash.add(to_text(value.type));
    hash.add_bytes(data.reals.data(), data.reals.size() * sizeof(double));
    hash.add_bytes(data.ints.data(), data.ints.size() * sizeof(int64_t));
  }
  return hash.digest();
}

}  // namespace gradrack
