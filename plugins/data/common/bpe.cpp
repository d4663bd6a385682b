// SPDX-License-Identifier: Apache-2.0
// Bpe: see bpe.hpp.
#include "plugins/data/common/bpe.hpp"

#include <algorithm>
#include <utility>

#include "plugins/data/common/gpt2_words.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

namespace {

constexpr size_t kMostWords = 1 << 17;  // that are remembered
constexpr size_t kLongestKept = 64;     // bytes of such a word
constexpr size_t kWordsATick = 4096;
constexpr int64_t kMostIds = 1 << 24;

}  // namespace

Bpe::Bpe(BpeModel model, bool special_tokens, bool replace_ill_formed)
    : model_(std::move(model)), replace_(replace_ill_formed) {
  number_tokens();
  learn_merges();
  sort_added(special_tokens);
  identity_ =
      gr::text("bpe ", model_.digest, special_tokens ? " special" : "", replace_ ? " replace" : "");
  // What the tables above were made of is not looked at again.
  (void)std::exchange(model_.merges, {});
  (void)std::exchange(model_.added, {});
  if (!model_.ignore_merges) (void)std::exchange(model_.vocab, {});
}

void Bpe::number_tokens() {
  const auto set = [&](const std::string& bytes, int32_t id) {
    gr::require(id >= 0 && id < kMostIds, GR_INVALID_ARGUMENT, "tokenizer_file", model_.path,
                ": token '", bytes, "' has id ", id, ", wanted 0 to ", kMostIds - 1);
    const auto place = static_cast<size_t>(id);
    if (place >= bytes_of_.size()) {
      bytes_of_.resize(place + 1);
      exists_.resize(place + 1);
    }
    gr::require(!exists_[place] || bytes_of_[place] == bytes, GR_INVALID_ARGUMENT, "tokenizer_file",
                model_.path, ": id ", id, " is both '", bytes_of_[place], "' and '", bytes, "'");
    bytes_of_[place] = bytes;
    exists_[place] = true;
  };
  for (const auto& [bytes, id] : model_.vocab) set(bytes, id);
  for (const AddedToken& token : model_.added) {
    set(token.content, token.id);
    if (token.content == "<|endoftext|>") end_id_ = token.id;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = model_.vocab.find(std::string(1, static_cast<char>(byte)));
    gr::require(found != model_.vocab.end(), GR_INVALID_ARGUMENT, "tokenizer_file", model_.path,
                ": the vocabulary has no token for byte ", byte,
                ": train it with the whole byte-level alphabet");
    id_of_byte_[byte] = found->second;
  }
}

void Bpe::learn_merges() {
  size_t line = 0;
  for (const auto& [left, right] : model_.merges) {
    const auto id_of = [&](const std::string& bytes) {
      const auto found = model_.vocab.find(bytes);
      gr::require(found != model_.vocab.end(), GR_INVALID_ARGUMENT, "tokenizer_file", model_.path,
                  ": merge ", line, " needs the token '", bytes, "', which the vocabulary lacks");
      return found->second;
    };
    const int32_t joined = id_of(left + right);
    gr::require(merges_.add(id_of(left), id_of(right), joined), GR_INVALID_ARGUMENT,
                "tokenizer_file", model_.path, ": merge ", line, " is there twice");
    ++line;
  }
}

void Bpe::sort_added(bool special_tokens) {
  for (const AddedToken& token : model_.added) {
    if (token.special && !special_tokens) continue;
    added_by_byte_[static_cast<uint8_t>(token.content[0])].push_back(token);
  }
  for (auto& tokens : added_by_byte_) {
    std::stable_sort(tokens.begin(), tokens.end(), [](const AddedToken& a, const AddedToken& b) {
      return a.content.size() > b.content.size();
    });
  }
}

const AddedToken* Bpe::added_at(std::string_view text, size_t at) const {
  for (const AddedToken& token : added_by_byte_[static_cast<uint8_t>(text[at])]) {
    if (text.substr(at).starts_with(token.content)) return &token;
  }
  return nullptr;
}

std::vector<int32_t> Bpe::encode(std::string_view raw, const std::function<void()>& tick) const {
  std::string mended;
  const std::string_view text = check_utf8(raw, replace_, &mended);
  const std::lock_guard lock(words_mutex_);
  std::vector<int32_t> ids;
  size_t plain = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = added_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    encode_plain(text.substr(plain, at - plain), tick, &ids);
    ids.push_back(token->id);
    at += token->content.size();
    plain = at;
  }
  encode_plain(text.substr(plain), tick, &ids);
  return ids;
}

void Bpe::encode_plain(std::string_view text, const std::function<void()>& tick,
                       std::vector<int32_t>* ids) const {
  if (text.empty()) return;
  std::string spaced;
  if (model_.prefix_space && text[0] != ' ') {
    spaced = " " + std::string(text);
    text = spaced;
  }
  if (!model_.split_words) return encode_word(text, ids);
  size_t words = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = gpt2_word_end(text, at);
    encode_word(text.substr(at, end - at), ids);
    at = end;
    if (++words % kWordsATick == 0) tick();
  }
}

void Bpe::encode_word(std::string_view word, std::vector<int32_t>* ids) const {
  const std::string key(word);
  if (const auto known = words_.find(key); known != words_.end()) {
    ids->insert(ids->end(), known->second.begin(), known->second.end());
    return;
  }
  std::vector<int32_t> symbols;
  const auto whole = model_.ignore_merges ? model_.vocab.find(key) : model_.vocab.end();
  if (whole != model_.vocab.end()) {
    symbols.push_back(whole->second);
  } else {
    for (const char c : word) symbols.push_back(id_of_byte_[static_cast<uint8_t>(c)]);
    merges_.apply(&symbols);
  }
  ids->insert(ids->end(), symbols.begin(), symbols.end());
  if (word.size() <= kLongestKept && words_.size() < kMostWords) words_.emplace(key, symbols);
}

std::string Bpe::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    gr::require(id >= 0 && id < vocab() && exists_[static_cast<size_t>(id)], GR_OUT_OF_RANGE, "ids",
                "id ", id, " stands for nothing in ", model_.path);
    text += bytes_of_[static_cast<size_t>(id)];
  }
  return text;
}

}  // namespace corpus
