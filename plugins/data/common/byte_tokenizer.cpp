// SPDX-License-Identifier: Apache-2.0
// ByteTokenizer: see byte_tokenizer.hpp.
#include "plugins/data/common/byte_tokenizer.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

void add_bytes(std::string_view text, ByteSet* seen) {
  for (const char c : text) (*seen)[static_cast<uint8_t>(c)] = true;
}

std::string show_byte(uint8_t byte) {
  const bool plain = byte >= 0x20 && byte < 0x7f;
  return plain ? std::string{'\'', static_cast<char>(byte), '\''} : gr::text("byte ", int{byte});
}

ByteTokenizer::ByteTokenizer(const ByteSet* seen, bool with_end, std::string data)
    : with_end_(with_end), data_(std::move(data)), identity_("bytes") {
  id_of_byte_.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) {
    if (seen != nullptr && !(*seen)[byte]) continue;
    id_of_byte_[byte] = static_cast<int32_t>(byte_of_id_.size());
    byte_of_id_.push_back(static_cast<uint8_t>(byte));
  }
  for (const uint8_t byte : byte_of_id_) identity_ += gr::text(' ', int{byte});
  if (with_end_) identity_ += " end";
}

std::vector<int32_t> ByteTokenizer::encode(std::string_view text,
                                           const std::function<void()>&) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for (size_t position = 0; position < text.size(); ++position) {
    const auto byte = static_cast<uint8_t>(text[position]);
    const int32_t id = id_of_byte_[byte];
    if (id < 0) {
      throw gr::Error(GR_OUT_OF_RANGE, "text",
                      gr::text("token outside the vocabulary: ", show_byte(byte), " at position ",
                               position, " does not occur in ", data_));
    }
    ids.push_back(id);
  }
  return ids;
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    if (with_end_ && id == end_id()) continue;
    gr::require(id >= 0 && id < static_cast<int64_t>(byte_of_id_.size()), GR_OUT_OF_RANGE, "ids",
                "id ", id, " stands for no character: ", data_, " has ids 0 to ",
                byte_of_id_.size() - 1);
    text.push_back(static_cast<char>(byte_of_id_[static_cast<size_t>(id)]));
  }
  return text;
}

}  // namespace corpus
