// SPDX-License-Identifier: Apache-2.0
// Corpus: see corpus.hpp.
#include "plugins/data/common/corpus.hpp"

#include "plugins/data/common/byte_tokenizer.hpp"
#include "plugins/data/common/cancel.hpp"
#include "plugins/data/common/digest.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

Corpus::Corpus(const CorpusRequest& request, const gr_host_t& host) {
  make_tokenizer(request);
  Digest digest;
  digest.add_text(request.content);
  digest.add_text(tokenizer_->identity());
  digest.add_text(request.with_end ? "with end" : "");
  identity_ = digest.hex();
  // Bytes are quicker numbered than read from a file.
  if (request.tokenizer.is_bytewise()) {
    tokenize(request, host);
  } else {
    const TokenCache cache(host);
    if (std::optional<Tokenized> kept = cache.find(identity_, tokenizer_->vocab())) {
      tokens_ = std::move(*kept);
    } else {
      tokenize(request, host);
      cache.keep(identity_, tokens_);
    }
  }
  check_vocab(request);
}

void Corpus::make_tokenizer(const CorpusRequest& request) {
  if (request.tokenizer.kind == "bytes") {
    tokenizer_ = std::make_unique<ByteTokenizer>(nullptr, request.with_end, request.name);
  } else if (request.tokenizer.kind == "chars") {
    ByteSet seen = {};
    request.documents([&](std::string_view document) { add_bytes(document, &seen); });
    tokenizer_ = std::make_unique<ByteTokenizer>(&seen, request.with_end, request.name);
  } else {
    tokenizer_ = load_tokenizer(request.tokenizer);
  }
  gr::require(
      !request.with_end || tokenizer_->end_id() >= 0, GR_INVALID_ARGUMENT, "tokenizer_file",
      request.tokenizer.file,
      ": the tokenizer has no token that ends a document (<|endoftext|>, or SentencePiece's "
      "eos)");
}

void Corpus::tokenize(const CorpusRequest& request, const gr_host_t& host) {
  const auto tick = cancel_tick(host);
  tokens_.own.emplace(tokenizer_->vocab());
  const auto end = static_cast<int32_t>(tokenizer_->end_id());
  try {
    request.documents([&](std::string_view document) {
      tick();
      tokens_.own->append(tokenizer_->encode(document, tick));
      if (request.with_end) tokens_.own->append({&end, 1});
      tokens_.ends.push_back(tokens_.own->size());
    });
  } catch (const gr::Error& error) {
    throw gr::Error(error.code(), error.field(), request.name + ": " + error.what());
  }
  tokens_.ids = tokens_.own->view();
}

void Corpus::check_vocab(const CorpusRequest& request) {
  vocab_ = request.vocab > 0 ? request.vocab : tokenizer_->vocab();
  const IdView& ids = tokens_.ids;
  const int64_t position = ids.find_beyond(vocab_, 0, ids.size());
  if (position < 0) return;
  const int64_t id = ids.at(position);
  const std::string text = tokenizer_->decode({&id, 1});
  const std::string shown =
      text.size() == 1 ? show_byte(static_cast<uint8_t>(text[0])) : "'" + text + "'";
  throw gr::Error(
      GR_OUT_OF_RANGE, "vocab",
      gr::text(request.name, ": token outside the vocabulary: ", shown, " at position ", position,
               " has id ", id, ", vocab is ", vocab_, ": raise `vocab`, or leave it out"));
}

}  // namespace corpus
