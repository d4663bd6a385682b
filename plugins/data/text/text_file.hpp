// SPDX-License-Identifier: Apache-2.0
// TextFile: a file read whole, its bytes replaced by token ids, and the way back.
//
// Invariant: every stored id is below vocab(). Ids fit a byte, since a token is one byte of the
// file: with `chars` ids number the distinct bytes in byte order, with `bytes` the byte is the id.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

class TextFile {
 public:
  /// Reads `path`. `vocab` 0: as many ids as the tokenizer needs. Throws GR_NOT_FOUND or GR_IO
  /// (cannot be read), GR_OUT_OF_RANGE (empty, or a token beyond `vocab`).
  TextFile(std::string path, bool bytes, int64_t vocab);

  const std::string& path() const { return path_; }
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  int64_t vocab() const { return vocab_; }

  /// Writes the ids from position `start` on; start + out.size() <= size().
  void copy(int64_t start, std::span<int64_t> out) const;

  /// Throws GR_OUT_OF_RANGE for a byte or id that the vocabulary lacks.
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(std::span<const int64_t> ids) const;

 private:
  void number_bytes(bool bytes);
  void check_vocab(int64_t vocab);

  std::string path_;
  std::vector<uint8_t> ids_;
  std::array<int, 256> id_of_byte_;  // -1: not in the vocabulary
  std::vector<uint8_t> byte_of_id_;
  int64_t vocab_ = 0;
};
