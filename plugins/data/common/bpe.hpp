// SPDX-License-Identifier: Apache-2.0
// Bpe: byte-level byte-pair encoding as GPT-2 has it.
//
// Text is cut at added tokens, the rest into words (gpt2_words.hpp), each byte of a word becomes a
// symbol, and merges join symbols. Invariant: decode(encode(text)) == text for well-formed text,
// since every byte has a symbol; a vocabulary that lacks one is refused.
#pragma once

#include <array>
#include <mutex>
#include <unordered_map>

#include "plugins/data/common/bpe_merge.hpp"
#include "plugins/data/common/tokenizer.hpp"

namespace corpus {

/// A token that stands beside the merges.
struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool special = false;
};

/// What files say of a tokenizer; bytes as they are, not as GPT-2's letters for them.
struct BpeModel {
  std::unordered_map<std::string, int32_t> vocab;           ///< a token's bytes
  std::vector<std::pair<std::string, std::string>> merges;  ///< in learned order
  std::vector<AddedToken> added;
  bool split_words = true;     ///< pre_tokenizer.use_regex
  bool prefix_space = false;   ///< pre_tokenizer.add_prefix_space
  bool ignore_merges = false;  ///< a word that is a token is not built by merges
  std::string digest;          ///< of the files
  std::string path;            ///< for messages
};

class Bpe : public Tokenizer {
 public:
  /// Throws GR_INVALID_ARGUMENT for a model that contradicts itself or lacks bytes.
  Bpe(BpeModel model, bool special_tokens, bool replace_ill_formed);

  int64_t vocab() const override { return static_cast<int64_t>(bytes_of_.size()); }
  int64_t end_id() const override { return end_id_; }
  std::vector<int32_t> encode(std::string_view text,
                              const std::function<void()>& tick) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  const std::string& identity() const override { return identity_; }

 private:
  void number_tokens();
  void learn_merges();
  void sort_added(bool special_tokens);
  void encode_plain(std::string_view text, const std::function<void()>& tick,
                    std::vector<int32_t>* ids) const;
  void encode_word(std::string_view word, std::vector<int32_t>* ids) const;
  const AddedToken* added_at(std::string_view text, size_t at) const;

  BpeModel model_;
  bool replace_;
  std::array<int32_t, 256> id_of_byte_;
  std::vector<std::string> bytes_of_;  // by id; "" for one that nothing has
  std::vector<bool> exists_;           // by id
  Merges merges_;
  /// Added tokens that text may become, by first byte, longest first.
  std::array<std::vector<AddedToken>, 256> added_by_byte_;
  int64_t end_id_ = -1;
  std::string identity_;
  mutable std::mutex words_mutex_;
  mutable std::unordered_map<std::string, std::vector<int32_t>> words_;  // encoded before
};

}  // namespace corpus
