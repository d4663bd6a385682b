// SPDX-License-Identifier: Apache-2.0
// ByteTokenizer: a byte a token. `bytes`: the byte is the id; `chars`: ids number some bytes.
#pragma once

#include <array>

#include "plugins/data/common/tokenizer.hpp"

namespace corpus {

/// Which bytes occur.
using ByteSet = std::array<bool, 256>;
void add_bytes(std::string_view text, ByteSet* seen);

class ByteTokenizer : public Tokenizer {
 public:
  /// `seen` null: all bytes, the byte is the id, and 256 ends a document where `with_end`. Else
  /// those seen get ids in byte order, and the end one more. `data` names them in messages.
  ByteTokenizer(const ByteSet* seen, bool with_end, std::string data);

  int64_t vocab() const override {
    return static_cast<int64_t>(byte_of_id_.size()) + (with_end_ ? 1 : 0);
  }
  int64_t end_id() const override { return with_end_ ? vocab() - 1 : -1; }
  std::vector<int32_t> encode(std::string_view text,
                              const std::function<void()>& tick) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  const std::string& identity() const override { return identity_; }

 private:
  bool with_end_;
  std::string data_, identity_;
  std::array<int32_t, 256> id_of_byte_;  // -1: not in the vocabulary
  std::vector<uint8_t> byte_of_id_;
};

/// 'a', or the number of a byte that cannot be shown.
std::string show_byte(uint8_t byte);

}  // namespace corpus
