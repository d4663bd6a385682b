// SPDX-License-Identifier: Apache-2.0
// SentencePiece: see sentence_piece.hpp.
#include "plugins/data/common/sentence_piece.hpp"

#include <sentencepiece_processor.h>

#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/mapped_file.hpp"

namespace corpus {

namespace gr = gradrack::sdk;

namespace {

// The library keeps a lattice over the whole text, about a hundred bytes a byte.
constexpr size_t kMostBytes = size_t{1} << 26;

class SentencePiece : public Tokenizer {
 public:
  SentencePiece(const std::string& path, bool replace) : path_(path), replace_(replace) {
    const MappedFile file(path, "tokenizer_file");
    const auto status = processor_.LoadFromSerializedProto(
        absl::string_view(file.text().data(), file.text().size()));
    gr::require(status.ok(), GR_INVALID_ARGUMENT, "tokenizer_file", path,
                ": is no SentencePiece model: ", status.ToString());
    gr::require(processor_.GetPieceSize() > 0, GR_INVALID_ARGUMENT, "tokenizer_file", path,
                ": the model has no pieces");
    Digest digest;
    digest.add_text(file.text());
    identity_ = gr::text("sentencepiece ", digest.hex(), replace ? " replace" : "");
  }

  int64_t vocab() const override { return processor_.GetPieceSize(); }
  int64_t end_id() const override { return processor_.eos_id(); }
  const std::string& identity() const override { return identity_; }

  std::vector<int32_t> encode(std::string_view raw, const std::function<void()>&) const override {
    std::string mended;
    const std::string_view text = check_utf8(raw, replace_, &mended);
    gr::require(text.size() <= kMostBytes, GR_OUT_OF_RANGE, "tokenizer", "a document of ",
                text.size(), " bytes is more than SentencePiece takes at once, ", kMostBytes,
                ": use `jsonl` with a document a line");
    std::vector<int> ids;
    const auto status = processor_.Encode(absl::string_view(text.data(), text.size()), &ids);
    gr::require(status.ok(), GR_INTERNAL, "tokenizer", path_, ": ", status.ToString());
    return {ids.begin(), ids.end()};
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<int> narrow;
    for (const int64_t id : ids) {
      gr::require(id >= 0 && id < vocab(), GR_OUT_OF_RANGE, "ids", "id ", id,
                  " stands for nothing in ", path_, ": it has ", vocab(), " pieces");
      narrow.push_back(static_cast<int>(id));
    }
    std::string text;
    const auto status = processor_.Decode(narrow, &text);
    gr::require(status.ok(), GR_INTERNAL, "tokenizer", path_, ": ", status.ToString());
    return text;
  }

 private:
  std::string path_, identity_;
  bool replace_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentence_piece(const std::string& path, bool replace_ill_formed) {
  return std::make_unique<SentencePiece>(path, replace_ill_formed);
}

}  // namespace corpus
