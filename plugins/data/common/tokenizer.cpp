// SPDX-License-Identifier: Apache-2.0
// What tokenizers share: see tokenizer.hpp.
#include "plugins/data/common/tokenizer.hpp"

#include "plugins/data/common/bpe_files.hpp"
#include "plugins/data/common/sentence_piece.hpp"
#include "plugins/data/common/utf8.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

TokenizerChoice TokenizerChoice::from(const gr::Options& options) {
  TokenizerChoice choice;
  choice.kind = options.get<std::string>("tokenizer");
  choice.file = options.get<std::string>("tokenizer_file");
  choice.merges = options.get<std::string>("merges_file");
  choice.special_tokens = options.get<bool>("special_tokens");
  choice.replace_ill_formed = options.get<std::string>("invalid_utf8") == "replace";
  const bool reads = !choice.is_bytewise(), bpe = choice.kind == "bpe";
  const auto only = [&](bool given, bool fits, const char* option, const char* whose) {
    gr::require(!given || fits, GR_INVALID_ARGUMENT, option, "`", option, "` is for ", whose,
                ", the tokenizer is ", choice.kind, ": leave it out");
  };
  gr::require(!reads || !choice.file.empty(), GR_INVALID_ARGUMENT, "tokenizer_file",
              "missing; the tokenizer ", choice.kind, " reads it");
  only(!choice.file.empty(), reads, "tokenizer_file", "bpe and sentencepiece");
  only(!choice.merges.empty(), bpe, "merges_file", "bpe");
  only(choice.special_tokens, bpe, "special_tokens", "bpe");
  only(choice.replace_ill_formed, reads, "invalid_utf8", "bpe and sentencepiece");
  return choice;
}

std::unique_ptr<Tokenizer> load_tokenizer(const TokenizerChoice& choice) {
  if (choice.kind == "sentencepiece") {
    return load_sentence_piece(choice.file, choice.replace_ill_formed);
  }
  return std::make_unique<Bpe>(read_bpe(choice.file, choice.merges), choice.special_tokens,
                               choice.replace_ill_formed);
}

std::string_view check_utf8(std::string_view text, bool replace, std::string* mended) {
  const size_t fault = find_ill_formed(text);
  if (fault == std::string_view::npos) return text;
  gr::require(replace, GR_OUT_OF_RANGE, "invalid_utf8", "byte ",
              int{static_cast<uint8_t>(text[fault])}, " at position ", fault,
              " is no UTF-8: mend the text, or set `invalid_utf8: replace`");
  *mended = replace_ill_formed(text);
  return *mended;
}

}  // namespace corpus
