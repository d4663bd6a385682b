// SPDX-License-Identifier: Apache-2.0
// Data source `jsonl`: documents of a JSON Lines file, packed into rows or padded to them.
//
// Every document is followed by the tokenizer's end token, put there by id. Outputs `tokens`,
// `targets`, `positions` and `documents` (rows.hpp); a model reads those it has inputs for.
// Invariant: what a row holds is a function of (options, seed, split, index, row).
#include "gradrack/data.hpp"
#include "lines.hpp"
#include "plugins/data/common/cancel.hpp"
#include "plugins/data/common/corpus.hpp"
#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/next_tokens.hpp"
#include "rows.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kJsonlOptions[] = {
    GR_OPT_PATH_REQUIRED("file", "one JSON object a line"),
    GR_OPT_STRING("field", "text", "the object's key that holds the text"),
    GR_OPT_CHOICE("rows", "packed", "packed|padded",
                  "packed: rows are cut from all documents; padded: a row has one document's"),
    GR_OPT_CHOICE("invalid_lines", "error", "error|skip",
                  "a line that is no such object ends the run, or is passed over"),
    corpus::kTokenizer,
    corpus::kTokenizerFile,
    corpus::kMergesFile,
    corpus::kSpecialTokens,
    corpus::kInvalidUtf8,
    GR_OPT_INT("block", "64", 1, 1 << 24, "tokens a row"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9, "documents kept for evaluation"),
    GR_OPT_CHOICE("split", "hash", "hash|position",
                  "which validate: by a hash of their text, or the last of the file"),
    GR_OPT_INT("vocab", "0", 0, 1 << 24, "number of ids; 0: what the tokenizer needs"),
    corpus::order_option("permuted"),
};

/// Documents with those that train first.
struct Split {
  std::vector<Document> documents;
  size_t train = 0;
};

class Jsonl {
 public:
  static constexpr const char* kName = "jsonl";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Documents of a JSON Lines file, packed or padded.";
  static constexpr auto& kOptions = kJsonlOptions;
  static constexpr bool kConcurrent = true;

  Jsonl(const gr::Options& options, const gr_host_t& host)
      : path_(options.get<std::string>("file")),
        block_(options.get<int64_t>("block")),
        split_(read(options, host)),
        corpus_(request(options), host),
        windows_(cut(options)) {
    rows_.describe({corpus_.vocab(),
                    corpus_.identity(),
                    &windows_,
                    gr::text("jsonl ", path_, ": ", split_.documents.size(), " documents, ",
                             corpus_.ids().size(), " tokens, vocabulary ", corpus_.vocab(), ", ",
                             windows_.train_items(), " rows to train on, ",
                             windows_.validation_items(), " to validate"),
                    {{"positions", block_}, {"documents", block_ + 1}}});
    split_ = {};  // the tokens are what is needed from here on
  }

  const gr_data_info_t& info() const { return rows_.info(); }
  int64_t rows(const gr_batch_request_t& request) const { return windows_.rows(request); }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    rows_.check_outputs(outputs, count);
    for (int64_t row = 0; row < count; ++row) {
      const auto of = [&](size_t k) { return gr::row_of<int64_t>(*outputs[k], row); };
      fill_row(corpus_.ids(), corpus_.ends(), windows_.window(request, row),
               corpus_.tokenizer().end_id(), {of(0), of(1), of(2), of(3)});
    }
  }

  std::vector<int64_t> encode(std::string_view input) const {
    const std::vector<int32_t> ids = corpus_.tokenizer().encode(input, [] {});
    return {ids.begin(), ids.end()};
  }
  std::string decode(std::span<const int64_t> ids) const { return corpus_.tokenizer().decode(ids); }

 private:
  Split read(const gr::Options& options, const gr_host_t& host) {
    const corpus::MappedFile file(path_, "file");
    Lines lines =
        read_lines(file.text(), path_, options.get<std::string>("field"),
                   options.get<std::string>("invalid_lines") == "skip", corpus::cancel_tick(host));
    if (lines.skipped > 0) {
      host.log(host.context, GR_LOG_WARN,
               gr::text(path_, ": ", lines.skipped,
                        " lines were passed over, the first: ", lines.first_fault)
                   .c_str());
    }
    gr::require(!lines.documents.empty(), GR_OUT_OF_RANGE, "file", path_,
                ": there is no document in it");
    const auto fraction = options.get<double>("validation_fraction");
    const bool by_hash = options.get<std::string>("split") == "hash";
    const int64_t trains =
        corpus::training_part(static_cast<int64_t>(lines.documents.size()), fraction);
    Split split;
    std::vector<Document> validation;
    for (size_t k = 0; k < lines.documents.size(); ++k) {
      const bool validates = by_hash ? corpus::validates_by_hash(lines.documents[k].text, fraction)
                                     : static_cast<int64_t>(k) >= trains;
      auto& side = validates ? validation : split.documents;
      side.push_back(std::move(lines.documents[k]));
    }
    split.train = split.documents.size();
    std::move(validation.begin(), validation.end(), std::back_inserter(split.documents));
    return split;
  }

  corpus::CorpusRequest request(const gr::Options& options) const {
    corpus::CorpusRequest request;
    request.name = path_;
    request.tokenizer = corpus::TokenizerChoice::from(options);
    request.vocab = options.get<int64_t>("vocab");
    request.with_end = true;
    corpus::Digest digest;
    for (const Document& document : split_.documents) digest.add_text(document.text);
    digest.add_text(std::to_string(split_.train));
    request.content = digest.hex();
    request.documents = [this](const auto& take) {
      for (const Document& document : split_.documents) {
        try {
          take(document.text);
        } catch (const gr::Error& error) {
          throw gr::Error(error.code(), error.field(),
                          gr::text("line ", document.line, ": ", error.what()));
        }
      }
    };
    return request;
  }

  corpus::Windows cut(const gr::Options& options) const {
    const bool padded = options.get<std::string>("rows") == "padded";
    const std::vector<int64_t>& ends = corpus_.ends();
    std::vector<corpus::Range> train, validation;
    const auto add = [&](std::vector<corpus::Range>* to, size_t first, size_t last) {
      const auto start = [&](size_t k) { return k == 0 ? int64_t{0} : ends[k - 1]; };
      if (padded) {
        for (size_t k = first; k < last; ++k) to->push_back({0, start(k), ends[k] - start(k)});
      } else if (first < last) {
        to->push_back({0, start(first), ends[last - 1] - start(first)});
      }
    };
    add(&train, 0, split_.train);
    add(&validation, split_.train, ends.size());
    corpus::Windows windows(train, validation, block_,
                            corpus::window_order(options.get<std::string>("order")), padded);
    const bool wanted = corpus::keeps_some(options.get<double>("validation_fraction"));
    gr::require(windows.train_items() > 0 && (!wanted || windows.validation_items() > 0),
                GR_OUT_OF_RANGE, "file", path_, ": gives ", windows.train_items(), " rows of ",
                block_, " tokens to train on and ", windows.validation_items(),
                " to validate: take more documents, a smaller block, `rows: padded` or another "
                "validation_fraction");
    return windows;
  }

  std::string path_;
  int64_t block_;
  Split split_;
  corpus::Corpus corpus_;
  corpus::Windows windows_;
  corpus::NextTokens rows_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.jsonl", "1.0.0", gr::Data<Jsonl>)
