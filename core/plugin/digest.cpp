// SPDX-License-Identifier: Apache-2.0
// SHA-256: see digest.hpp.
#include "core/plugin/digest.hpp"

#include <nettle/sha2.h>

namespace gradrack {

std::string sha256_hex(std::string_view bytes) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof digest, digest);
  std::string text;
  for (const uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_SIZE &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace gradrack
