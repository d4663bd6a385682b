// SPDX-License-Identifier: Apache-2.0
// Data source `tokens`: windows of .bin files of token ids, for next-token models.
//
// Files are mapped, so their size is no matter of memory. Outputs `tokens` and `targets`
// [batch, block] int64, targets one position later; no window crosses from one file to another.
// Invariant: which tokens a row holds is a function of (options, seed, split, index, row).
#include <glob.h>

#include "gradrack/data.hpp"
#include "plugins/data/common/cancel.hpp"
#include "plugins/data/common/digest.hpp"
#include "plugins/data/common/next_tokens.hpp"
#include "plugins/data/common/path_option.hpp"
#include "shard.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kTokensOptions[] = {
    GR_OPT_PATH_REQUIRED("files", "the shards: a file, or a pattern such as data/train_*.bin"),
    corpus::optional_path("validation_files", "shards kept for evaluation; none: see the next"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9,
                 "last part of all tokens, kept for evaluation where no files are"),
    GR_OPT_CHOICE("form", "auto", "auto|plain|llmc",
                  "plain: tokens alone; llmc: behind llm.c's header; auto: as the file begins"),
    GR_OPT_CHOICE("dtype", "auto", "auto|uint16|uint32",
                  "auto: as the header says, uint16 without one"),
    GR_OPT_INT("block", "64", 1, 1 << 24, "tokens a row"),
    GR_OPT_INT("vocab", "0", 0, INT32_MAX, "number of ids; 0: the largest in the files and one"),
    corpus::order_option("permuted"),
};

/// The files that a pattern names, in the order of their names.
std::vector<std::string> matching(const std::string& pattern, const char* option) {
  glob_t found = {};
  const int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  gr::require(code == 0, code == GLOB_NOMATCH ? GR_NOT_FOUND : GR_IO, option, pattern,
              ": no file fits: set `", option,
              "` to a file of tokens, or a pattern of their names");
  return paths;
}

class Tokens {
 public:
  static constexpr const char* kName = "tokens";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Windows of .bin files of token ids.";
  static constexpr auto& kOptions = kTokensOptions;
  static constexpr bool kConcurrent = true;

  Tokens(const gr::Options& options, const gr_host_t& host)
      : block_(options.get<int64_t>("block")),
        shards_(open(options, &train_shards_)),
        windows_(cut(options)) {
    const auto tick = corpus::cancel_tick(host);
    corpus::Digest digest;
    int64_t largest = -1, total = 0;
    const auto wanted = options.get<int64_t>("vocab");
    for (const Shard& shard : shards_) {
      const ShardContent content = shard.look(wanted, tick);
      largest = std::max(largest, content.largest);
      total += shard.ids().size();
      digest.add_text(content.identity);
    }
    const int64_t vocab = wanted > 0 ? wanted : largest + 1;
    rows_.describe({vocab, digest.hex(), &windows_,
                    gr::text("tokens ", options.get<std::string>("files"), ": ", total, " tokens (",
                             shards_[0].form(), ") in ", shards_.size(), " files, vocabulary ",
                             vocab, ", ", windows_.train_items(), " windows to train on, ",
                             windows_.validation_items(), " to validate")});
  }

  const gr_data_info_t& info() const { return rows_.info(); }
  int64_t rows(const gr_batch_request_t& request) const { return windows_.rows(request); }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    rows_.check_outputs(outputs, count);
    for (int64_t row = 0; row < count; ++row) {
      const corpus::Window window = windows_.window(request, row);
      rows_.fill(shards_[window.part].ids(), window.first, outputs, row);
    }
  }

 private:
  /// Those that train first; `train_shards`: how many they are.
  static std::vector<Shard> open(const gr::Options& options, size_t* train_shards) {
    std::vector<Shard> shards;
    const ShardFormat format{options.get<std::string>("form"), options.get<std::string>("dtype")};
    const auto add = [&](const char* option) {
      for (const std::string& path : matching(options.get<std::string>(option), option)) {
        shards.emplace_back(path, format);
      }
    };
    add("files");
    *train_shards = shards.size();
    if (!options.get<std::string>("validation_files").empty()) add("validation_files");
    return shards;
  }

  corpus::Windows cut(const gr::Options& options) const {
    const auto fraction = options.get<double>("validation_fraction");
    const bool by_files = train_shards_ < shards_.size();
    gr::require(!by_files || options.is_default("validation_fraction"), GR_INVALID_ARGUMENT,
                "validation_fraction", "there are validation_files: leave the fraction out");
    int64_t left = 0;
    for (const Shard& shard : shards_) left += shard.ids().size();
    left = by_files ? left : corpus::training_part(left, fraction);
    std::vector<corpus::Range> train, validation;
    for (size_t k = 0; k < shards_.size(); ++k) {
      const int64_t size = shards_[k].ids().size();
      const int64_t trains = by_files ? (k < train_shards_ ? size : 0) : std::min(size, left);
      left -= trains;
      if (trains > 0) train.push_back({k, 0, trains});
      if (trains < size) validation.push_back({k, trains, size - trains});
    }
    corpus::Windows windows(train, validation, block_,
                            corpus::window_order(options.get<std::string>("order")));
    const bool validates = by_files || corpus::keeps_some(fraction);
    gr::require(windows.train_items() > 0 && (!validates || windows.validation_items() > 0),
                GR_OUT_OF_RANGE, "files", options.get<std::string>("files"), ": gives ",
                windows.train_items(), " windows of ", block_, " + 1 tokens to train on and ",
                windows.validation_items(),
                " to validate: take more tokens, a smaller block or another validation_fraction");
    return windows;
  }

  int64_t block_;
  size_t train_shards_ = 0;
  std::vector<Shard> shards_;
  corpus::Windows windows_;
  corpus::NextTokens rows_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.tokens", "1.0.0", gr::Data<Tokens>)
