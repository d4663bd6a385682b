// SPDX-License-Identifier: Apache-2.0
// Digest: see digest.hpp.
#include "plugins/data/common/digest.hpp"

#include <nettle/sha2.h>

#include <array>

namespace corpus {

struct Digest::State {
  sha256_ctx context;
};

Digest::Digest() : state_(std::make_unique<State>()) { sha256_init(&state_->context); }
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  sha256_update(&state_->context, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
}

void Digest::add_text(std::string_view text) {
  const std::string length = std::to_string(text.size()) + ":";
  add(std::as_bytes(std::span(length)));
  add(std::as_bytes(std::span(text)));
}

std::string Digest::hex() {
  std::array<uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(&state_->context, digest.size(), digest.data());
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace corpus
