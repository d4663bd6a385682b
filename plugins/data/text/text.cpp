// SPDX-License-Identifier: Apache-2.0
// Data source `text`: windows of one text file, for next-token models.
//
// The first part of the file trains, the rest validates. Outputs `tokens` and `targets`
// [batch, block] int64, targets one position later. Invariant: a training row is a function of
// (seed, microbatch, row), so the position in the data is a number. No documents: the file is one.
#include "gradrack/data.hpp"
#include "plugins/data/common/corpus.hpp"
#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/next_tokens.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kTextOptions[] = {
    GR_OPT_PATH_REQUIRED("file", "the text to learn"),
    corpus::kTokenizer,
    corpus::kTokenizerFile,
    corpus::kMergesFile,
    corpus::kSpecialTokens,
    corpus::kInvalidUtf8,
    GR_OPT_INT("block", "64", 1, 1 << 24, "tokens a row"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9,
                 "last part of the file, kept for evaluation"),
    GR_OPT_INT("vocab", "0", 0, 1 << 24, "number of ids; 0: what the tokenizer needs"),
    corpus::order_option("random_windows"),
};

class Text {
 public:
  static constexpr const char* kName = "text";
  static constexpr const char* kVersion = "1.1.0";
  static constexpr const char* kHelp = "Windows of one text file, by the tokenizer's tokens.";
  static constexpr auto& kOptions = kTextOptions;
  static constexpr bool kConcurrent = true;

  Text(const gr::Options& options, const gr_host_t& host)
      : path_(options.get<std::string>("file")),
        corpus_(request(options), host),
        windows_(split(options)) {
    const int64_t trains = corpus::training_part(size(), fraction(options));
    rows_.describe({corpus_.vocab(), corpus_.identity(), &windows_,
                    gr::text("text ", path_, ": ", size(), " tokens, vocabulary ", corpus_.vocab(),
                             ", ", trains, " to train on, ", size() - trains, " to validate")});
  }

  const gr_data_info_t& info() const { return rows_.info(); }
  int64_t rows(const gr_batch_request_t& request) const { return windows_.rows(request); }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    rows_.check_outputs(outputs, count);
    for (int64_t row = 0; row < count; ++row) {
      rows_.fill(corpus_.ids(), windows_.window(request, row).first, outputs, row);
    }
  }

  std::vector<int64_t> encode(std::string_view input) const {
    const std::vector<int32_t> ids = corpus_.tokenizer().encode(input, [] {});
    return {ids.begin(), ids.end()};
  }
  std::string decode(std::span<const int64_t> ids) const { return corpus_.tokenizer().decode(ids); }

 private:
  static double fraction(const gr::Options& options) {
    return options.get<double>("validation_fraction");
  }

  static corpus::CorpusRequest request(const gr::Options& options) {
    auto file = std::make_shared<corpus::MappedFile>(options.get<std::string>("file"), "file");
    gr::require(!file->text().empty(), GR_OUT_OF_RANGE, "file", file->path(),
                ": the text is empty: nothing can be learned from it");
    corpus::CorpusRequest request;
    request.name = file->path();
    request.tokenizer = corpus::TokenizerChoice::from(options);
    request.vocab = options.get<int64_t>("vocab");
    corpus::Digest digest;
    digest.add(file->bytes());
    request.content = digest.hex();
    request.documents = [file](const auto& take) { take(file->text()); };
    return request;
  }

  corpus::Windows split(const gr::Options& options) const {
    const auto block = options.get<int64_t>("block");
    const int64_t trains = corpus::training_part(size(), fraction(options));
    const int64_t validates = size() - trains;
    const bool wanted = corpus::keeps_some(fraction(options));
    gr::require(trains > block && (!wanted || validates > block), GR_OUT_OF_RANGE, "file", path_,
                ": the text is shorter than a block: ", trains, " tokens to train on and ",
                validates, " to validate, but each part needs at least block + 1 = ", block + 1,
                ": use a longer text or a smaller block");
    return {{{0, 0, trains}},
            {{0, trains, validates}},
            block,
            corpus::window_order(options.get<std::string>("order"))};
  }

  int64_t size() const { return corpus_.ids().size(); }

  std::string path_;
  corpus::Corpus corpus_;
  corpus::Windows windows_;
  corpus::NextTokens rows_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.text", "1.1.0", gr::Data<Text>)
