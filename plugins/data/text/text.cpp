// SPDX-License-Identifier: Apache-2.0
// Data source `text`: windows of one text file, a byte a token, for next-token models.
//
// The first part of the file trains, the rest validates. Outputs `tokens` and `targets`
// [batch, block] int64, targets one position later. Invariant: a training row is a function of
// (seed, microbatch, row) by Philox, so the position in the data is a number. No documents, no
// control tokens: each byte stands for itself.
#include "gradrack/data.hpp"
#include "gradrack/philox.h"
#include "text_file.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr uint32_t kDrawTag = 0x64617461;  // "data": keeps these draws apart from all others

constexpr gr_option_t kTextOptions[] = {
    GR_OPT_PATH_REQUIRED("file", "the text to learn"),
    GR_OPT_CHOICE("tokenizer", "chars", "chars|bytes",
                  "chars: ids number the distinct bytes of the file; bytes: the byte is the id"),
    GR_OPT_INT("block", "64", 1, 1 << 24, "tokens a row"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9,
                 "last part of the file, kept for evaluation"),
    GR_OPT_INT("vocab", "0", 0, 1 << 24, "number of ids; 0: what the tokenizer needs"),
};

class Text {
 public:
  static constexpr const char* kName = "text";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Windows of one text file, by character or byte.";
  static constexpr auto& kOptions = kTextOptions;

  explicit Text(const gr::Options& options)
      : block_(options.get<int64_t>("block")),
        text_(options.get<std::string>("file"), options.get<std::string>("tokenizer") == "bytes",
              options.get<int64_t>("vocab")) {
    split(options.get<double>("validation_fraction"));
    for (auto* output : {&outputs_[0], &outputs_[1]}) {
      output->dtype = GR_INT64;
      output->rank = 2;
      output->dims[0] = {0, "batch"};
      output->dims[1] = {block_, nullptr};
      output->limit = text_.vocab();
    }
    outputs_[0].name = "tokens";
    outputs_[1].name = "targets";
    summary_ = gr::text("text ", text_.path(), ": ", text_.size(), " tokens, vocabulary ",
                        text_.vocab(), ", ", train_tokens_, " to train on, ",
                        text_.size() - train_tokens_, " to validate");
    describe();
  }

  const gr_data_info_t& info() const { return info_; }

  int64_t rows(const gr_batch_request_t& request) const {
    gr::require(request.index >= 0 && request.batch_size > 0, GR_INVALID_ARGUMENT, "index",
                "batch ", request.index, " of ", request.batch_size, " rows does not exist");
    if (request.split == GR_SPLIT_TRAIN) return request.batch_size;
    const int64_t batches = info_.validation_items / request.batch_size;
    if (request.index > batches) return 0;  // before the product below can overflow
    return std::min(request.batch_size,
                    info_.validation_items - request.index * request.batch_size);
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    check_outputs(outputs, count);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t start =
          request.split == GR_SPLIT_TRAIN
              ? train_start(request, row)
              : train_tokens_ + (request.index * request.batch_size + row) * block_;
      text_.copy(start, gr::row_of<int64_t>(*outputs[0], row));
      text_.copy(start + 1, gr::row_of<int64_t>(*outputs[1], row));
    }
  }

  std::vector<int64_t> encode(std::string_view input) const { return text_.encode(input); }
  std::string decode(std::span<const int64_t> ids) const { return text_.decode(ids); }

 private:
  /// Fractions are taken in millionths, so that 0.1 means exactly floor(n * 9 / 10) for training.
  void split(double validation_fraction) {
    constexpr int64_t kMillion = 1000000;
    const auto kept = kMillion - static_cast<int64_t>(validation_fraction * kMillion + 0.5);
    const int64_t n = text_.size();
    train_tokens_ = n / kMillion * kept + n % kMillion * kept / kMillion;
    const bool fits = train_tokens_ > block_ && (kept == kMillion || n - train_tokens_ > block_);
    gr::require(fits, GR_OUT_OF_RANGE, "file", text_.path(),
                ": the text is shorter than a block: ", train_tokens_, " tokens to train on and ",
                n - train_tokens_,
                " to validate, but each part needs at least block + 1 = ", block_ + 1,
                ": use a longer text or a smaller block");
  }

  void describe() {
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.vocab = text_.vocab();
    info_.block = block_;
    info_.train_items = train_tokens_ - block_;
    info_.validation_items = std::max<int64_t>(0, text_.size() - train_tokens_ - 1) / block_;
    info_.summary = summary_.c_str();
  }

  int64_t train_start(const gr_batch_request_t& request, int64_t row) const {
    const auto index = static_cast<uint64_t>(request.index);
    const uint32_t counter[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                 static_cast<uint32_t>(row), kDrawTag};
    uint32_t draw[4];
    gr_philox4x32(counter, request.seed, draw);
    return static_cast<int64_t>(gr::scale_draw(draw, static_cast<uint64_t>(info_.train_items)));
  }

  void check_outputs(std::span<DLTensor* const> outputs, int64_t count) const {
    gr::require(outputs.size() == 2, GR_INVALID_ARGUMENT, "outputs", "got ", outputs.size(),
                " tensors, wanted tokens and targets");
    for (const DLTensor* t : outputs) {
      const bool ok = t->ndim == 2 && t->shape[0] == count && t->shape[1] == block_ &&
                      gr_dtype_of(t->dtype) == GR_INT64;
      gr::require(ok, GR_INVALID_ARGUMENT, "outputs", "wanted int64 tensors [", count, ", ", block_,
                  "]");
    }
  }

  int64_t block_;
  TextFile text_;
  int64_t train_tokens_ = 0;
  gr_data_output_t outputs_[2] = {};
  std::string summary_;
  gr_data_info_t info_ = {};
};

}  // namespace

GRADRACK_PLUGIN("gradrack.text", "1.0.0", gr::Data<Text>)
