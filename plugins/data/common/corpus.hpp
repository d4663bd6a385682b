// SPDX-License-Identifier: Apache-2.0
// Corpus: documents as tokens in memory, with the tokenizer that made them.
//
// Between the bytes of files and the windows of batches, for sources of text. Invariant: every id
// is below vocab(); identity() names content, tokenizer and nothing else.
#pragma once

#include "plugins/data/common/token_cache.hpp"
#include "plugins/data/common/tokenizer.hpp"

namespace corpus {

/// Where documents come from: calls `take` with each, in order; the same ones every time.
using Documents = std::function<void(const std::function<void(std::string_view)>& take)>;

/// What a corpus is made of.
struct CorpusRequest {
  Documents documents;
  std::string content;  ///< a hash of all the documents
  std::string name;     ///< for messages: the file's path
  TokenizerChoice tokenizer;
  bool with_end = false;  ///< each document is followed by the tokenizer's end id
  int64_t vocab = 0;      ///< ids wanted; 0: what the tokenizer needs
};

class Corpus {
 public:
  /// Throws GR_OUT_OF_RANGE for text that has no ids and for an id beyond `vocab`, GR_CANCELLED,
  /// and what the tokenizer throws. [main]
  Corpus(const CorpusRequest& request, const gr_host_t& host);

  int64_t vocab() const { return vocab_; }
  const IdView& ids() const { return tokens_.ids; }
  /// By document: tokens up to its end.
  const std::vector<int64_t>& ends() const { return tokens_.ends; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& identity() const { return identity_; }

 private:
  void make_tokenizer(const CorpusRequest& request);
  void tokenize(const CorpusRequest& request, const gr_host_t& host);
  void check_vocab(const CorpusRequest& request);

  std::unique_ptr<Tokenizer> tokenizer_;
  Tokenized tokens_;
  int64_t vocab_ = 0;
  std::string identity_;
};

}  // namespace corpus
