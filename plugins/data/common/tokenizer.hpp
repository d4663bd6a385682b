// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to ids and back, of whatever kind; and the options that name one.
//
// Invariant: an instance does not change, so the ids are a function of identity() and the text. The
// text of control tokens in a document is text: their ids stand only where a source puts them,
// unless `special_tokens` says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradrack/options.hpp"
#include "plugins/data/common/path_option.hpp"

namespace corpus {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int64_t vocab() const = 0;
  /// Id that ends a document; -1: there is none.
  virtual int64_t end_id() const = 0;
  /// Throws GR_OUT_OF_RANGE for text that has no ids, with the position. `tick` is called now and
  /// then and may throw. [any]
  virtual std::vector<int32_t> encode(std::string_view text,
                                      const std::function<void()>& tick) const = 0;
  /// Throws GR_OUT_OF_RANGE for an id that stands for nothing. [any]
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  /// All that decides ids, as text: kind, options, content of files.
  virtual const std::string& identity() const = 0;
};

/// What the options of a source say of its tokenizer.
struct TokenizerChoice {
  std::string kind;  ///< chars, bytes, bpe, sentencepiece
  std::string file, merges;
  bool special_tokens = false;      ///< text of control tokens becomes them
  bool replace_ill_formed = false;  ///< else ill-formed UTF-8 is refused

  static TokenizerChoice from(const gradrack::sdk::Options& options);
  /// A vocabulary of bytes, which `chars` takes from the data.
  bool is_bytewise() const { return kind == "chars" || kind == "bytes"; }
};

// Rows for the options table of a source that has a tokenizer.
inline constexpr gr_option_t kTokenizer =
    GR_OPT_CHOICE("tokenizer", "chars", "chars|bytes|bpe|sentencepiece",
                  "chars: ids number the distinct bytes of the data; bytes: the byte is the id; "
                  "bpe: byte-level merges as of GPT-2; sentencepiece: a model of that library");
inline constexpr gr_option_t kTokenizerFile =
    optional_path("tokenizer_file", "bpe: tokenizer.json or vocab.json; sentencepiece: the .model");
inline constexpr gr_option_t kMergesFile =
    optional_path("merges_file", "bpe with vocab.json: the merges.txt beside it");
inline constexpr gr_option_t kSpecialTokens = GR_OPT_BOOL(
    "special_tokens", "false", "bpe: text of a control token in the data becomes that token");
inline constexpr gr_option_t kInvalidUtf8 =
    GR_OPT_CHOICE("invalid_utf8", "error", "error|replace",
                  "bpe, sentencepiece: bytes that are no UTF-8 are refused, or become U+FFFD");

/// Makes a tokenizer that reads a file. Throws with the option at fault. [main]
std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerChoice& choice);

/// `text` as `choice` wants it: a copy in `*mended` where bytes had to be replaced. Throws
/// GR_OUT_OF_RANGE with the position of bytes that are no UTF-8.
std::string_view check_utf8(std::string_view text, bool replace, std::string* mended);

}  // namespace corpus
