// SPDX-License-Identifier: Apache-2.0
// TextFile: see text_file.hpp.
#include "text_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gradrack/error.hpp"

namespace {

namespace gr = gradrack::sdk;

std::vector<uint8_t> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  gr::require(file != nullptr, errno == ENOENT ? GR_NOT_FOUND : GR_IO, "file", path, ": ",
              std::strerror(errno), ": set `file` to a text that can be read");
  std::vector<uint8_t> content;
  uint8_t chunk[1 << 16];
  while (const size_t got = std::fread(chunk, 1, sizeof chunk, file.get())) {
    content.insert(content.end(), chunk, chunk + got);
  }
  gr::require(std::ferror(file.get()) == 0, GR_IO, "file", path, ": ", std::strerror(errno));
  gr::require(!content.empty(), GR_OUT_OF_RANGE, "file", path,
              ": the text is empty: nothing can be learned from it");
  return content;
}

/// 'a', or the number of a byte that cannot be shown.
std::string show(uint8_t byte) {
  const bool plain = byte >= 0x20 && byte < 0x7f;
  return plain ? std::string{'\'', static_cast<char>(byte), '\''} : gr::text("byte ", int{byte});
}

}  // namespace

TextFile::TextFile(std::string path, bool bytes, int64_t vocab)
    : path_(std::move(path)), ids_(read_file(path_)) {
  number_bytes(bytes);
  check_vocab(vocab);
  for (uint8_t& id : ids_) id = static_cast<uint8_t>(id_of_byte_[id]);
}

void TextFile::number_bytes(bool bytes) {
  std::array<bool, 256> seen;
  seen.fill(bytes);
  for (const uint8_t byte : ids_) seen[byte] = true;
  id_of_byte_.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    if (!seen[static_cast<size_t>(byte)]) continue;
    id_of_byte_[static_cast<size_t>(byte)] = static_cast<int>(byte_of_id_.size());
    byte_of_id_.push_back(static_cast<uint8_t>(byte));
  }
}

void TextFile::check_vocab(int64_t vocab) {
  vocab_ = vocab > 0 ? vocab : static_cast<int64_t>(byte_of_id_.size());
  for (size_t position = 0; position < ids_.size(); ++position) {
    const int id = id_of_byte_[ids_[position]];
    if (id < vocab_) continue;
    throw gr::Error(GR_OUT_OF_RANGE, "vocab",
                    gr::text(path_, ": token outside the vocabulary: ", show(ids_[position]),
                             " at position ", position, " has id ", id, ", vocab is ", vocab_,
                             ": raise `vocab`, or leave it out"));
  }
}

void TextFile::copy(int64_t start, std::span<int64_t> out) const {
  const uint8_t* from = ids_.data() + start;
  for (size_t k = 0; k < out.size(); ++k) out[k] = from[k];
}

std::vector<int64_t> TextFile::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  for (size_t position = 0; position < text.size(); ++position) {
    const auto byte = static_cast<uint8_t>(text[position]);
    const int id = id_of_byte_[byte];
    if (id < 0) {
      throw gr::Error(GR_OUT_OF_RANGE, "text",
                      gr::text("token outside the vocabulary: ", show(byte), " at position ",
                               position, " does not occur in ", path_));
    }
    ids.push_back(id);
  }
  return ids;
}

std::string TextFile::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    gr::require(id >= 0 && id < static_cast<int64_t>(byte_of_id_.size()), GR_OUT_OF_RANGE, "ids",
                "id ", id, " stands for no character: ", path_, " has ids 0 to ",
                byte_of_id_.size() - 1);
    text.push_back(static_cast<char>(byte_of_id_[static_cast<size_t>(id)]));
  }
  return text;
}
