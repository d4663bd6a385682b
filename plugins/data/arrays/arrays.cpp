// SPDX-License-Identifier: Apache-2.0
// Data source `arrays`: features and labels from two .npy files, for classifiers.
//
// The last rows validate, in order. Training takes the others in an order of its own for each
// epoch; what is left after the last full batch of an epoch is passed over in that epoch.
// Invariant: the order is a function of (seed, epoch), the place in it of the batch number, so that
// a position is a number. Nothing is augmented or normalised.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "gradrack/data.hpp"
#include "gradrack/philox.h"
#include "npy.hpp"
#include "plugins/data/common/digest.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr uint32_t kShuffleTag = 0x73687566;  // "shuf": keeps these draws apart from all others

constexpr gr_option_t kArraysOptions[] = {
    GR_OPT_PATH_REQUIRED("features", ".npy of float32, float64 or uint8, one row a sample"),
    GR_OPT_PATH_REQUIRED("labels", ".npy of int64 or int32, one a sample"),
    GR_OPT_FLOAT("validation_fraction", "0.1", 0, 0.9, "last rows, kept for evaluation"),
    GR_OPT_INT("classes", "0", 0, INFINITY, "labels are in [0, classes); 0: largest label + 1"),
    GR_OPT_STRING("features_name", "images", "name of the features' output"),
    GR_OPT_STRING("labels_name", "labels", "name of the labels' output"),
};

class Arrays {
 public:
  static constexpr const char* kName = "arrays";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Features and labels from .npy files.";
  static constexpr auto& kOptions = kArraysOptions;

  explicit Arrays(const gr::Options& options)
      : features_name_(options.get<std::string>("features_name")),
        labels_name_(options.get<std::string>("labels_name")) {
    const NpyArray features = read_npy(options.get<std::string>("features"), "features");
    const NpyArray labels = read_npy(options.get<std::string>("labels"), "labels");
    check_shapes(features, labels);
    features_ = to_floats(features, "features");
    labels_ = to_integers(labels, "labels");
    check_labels(labels.path, options.get<int64_t>("classes"));
    split(features, options.get<double>("validation_fraction"));
    describe(features);
    identify(features, labels);
  }

  const gr_data_info_t& info() const { return info_; }

  int64_t rows(const gr_batch_request_t& request) const {
    gr::require(request.index >= 0 && request.batch_size > 0, GR_INVALID_ARGUMENT, "index",
                "batch ", request.index, " of ", request.batch_size, " rows does not exist");
    if (request.split == GR_SPLIT_TRAIN) {
      gr::require(request.batch_size <= info_.train_items, GR_INVALID_ARGUMENT, "batch_size",
                  "got ", request.batch_size, ", there are only ", info_.train_items,
                  " samples to train on: lower batch_size");
      return request.batch_size;
    }
    const int64_t full = info_.validation_items / request.batch_size;
    if (request.index > full) return 0;  // before the product below can overflow
    return std::min(request.batch_size,
                    info_.validation_items - request.index * request.batch_size);
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) {
    const int64_t count = rows(request);
    check_outputs(outputs, count);
    const bool train = request.split == GR_SPLIT_TRAIN;
    const int64_t first = train ? enter_epoch(request) : request.index * request.batch_size;
    for (int64_t row = 0; row < count; ++row) {
      const int64_t sample =
          train ? order_[static_cast<size_t>(first + row)] : info_.train_items + first + row;
      const auto to = gr::row_of<float>(*outputs[0], row);
      std::copy_n(features_.begin() + sample * row_elements_, row_elements_, to.begin());
      static_cast<int64_t*>(outputs[1]->data)[row] = labels_[static_cast<size_t>(sample)];
    }
  }

 private:
  static void check_shapes(const NpyArray& features, const NpyArray& labels) {
    const size_t rank = features.shape.size();
    gr::require(rank >= 1 && features.count > 0, GR_INVALID_ARGUMENT, "features", features.path,
                ": has no samples");
    gr::require(labels.shape.size() == 1, GR_INVALID_ARGUMENT, "labels", labels.path, ": has rank ",
                labels.shape.size(), ", wanted one label a sample: rank 1");
    gr::require(labels.count == features.shape[0], GR_INVALID_ARGUMENT, "labels", labels.path,
                ": has ", labels.count, " labels, ", features.path, " has ", features.shape[0],
                " samples");
  }

  void check_labels(const std::string& path, int64_t classes) {
    const int64_t largest = *std::max_element(labels_.begin(), labels_.end());
    info_.classes = classes > 0 ? classes : largest + 1;
    for (size_t k = 0; k < labels_.size(); ++k) {
      if (labels_[k] >= 0 && labels_[k] < info_.classes) continue;
      throw gr::Error(GR_OUT_OF_RANGE, "labels",
                      gr::text(path, ": label ", labels_[k], " at position ", k, " is outside [0, ",
                               info_.classes, "): mend it or raise `classes`"));
    }
  }

  void split(const NpyArray& features, double validation_fraction) {
    const int64_t n = features.shape[0];
    row_elements_ = features.count / n;
    info_.validation_items =
        static_cast<int64_t>(static_cast<double>(n) * validation_fraction + 0.5);
    info_.train_items = n - info_.validation_items;
    gr::require(info_.train_items > 0, GR_OUT_OF_RANGE, "validation_fraction", features.path,
                ": of ", n, " samples none is left to train on: lower the fraction");
    order_.resize(static_cast<size_t>(info_.train_items));
  }

  void describe(const NpyArray& features) {
    outputs_[0].name = features_name_.c_str();
    outputs_[0].dtype = GR_FLOAT32;
    outputs_[0].rank = static_cast<uint32_t>(features.shape.size());
    for (size_t k = 1; k < features.shape.size(); ++k) {
      outputs_[0].dims[k] = {features.shape[k], nullptr};
    }
    outputs_[1].name = labels_name_.c_str();
    outputs_[1].dtype = GR_INT64;
    outputs_[1].rank = 1;
    outputs_[1].limit = info_.classes;
    for (auto& output : outputs_) output.dims[0] = {0, "batch"};
    summary_ = gr::text("arrays ", features.path, ": ", features.shape[0], " samples, ",
                        info_.classes, " classes, ", info_.train_items, " to train on, ",
                        info_.validation_items, " to validate");
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.summary = summary_.c_str();
  }

  void identify(const NpyArray& features, const NpyArray& labels) {
    corpus::Digest digest;
    digest.add_text(gr::text(features.descr, ' ', labels.descr, ' ', info_.train_items));
    digest.add(features.bytes);
    digest.add(labels.bytes);
    identity_ = digest.hex();
    info_.identity = identity_.c_str();
  }

  /// Makes order_ that of the batch's epoch and returns the place of its first row.
  int64_t enter_epoch(const gr_batch_request_t& request) {
    const int64_t batches = info_.train_items / request.batch_size;
    const int64_t epoch = request.index / batches;
    if (epoch != epoch_ || request.seed != seed_) shuffle(request.seed, epoch);
    return request.index % batches * request.batch_size;
  }

  /// Fisher-Yates with draws that depend on (seed, epoch, place) alone.
  void shuffle(uint64_t seed, int64_t epoch) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    const auto e = static_cast<uint64_t>(epoch);
    for (size_t k = order_.size(); k > 1; --k) {
      const uint32_t counter[4] = {static_cast<uint32_t>(k), static_cast<uint32_t>(e),
                                   static_cast<uint32_t>(e >> 32), kShuffleTag};
      uint32_t draw[4];
      gr_philox4x32(counter, seed, draw);
      std::swap(order_[k - 1], order_[static_cast<size_t>(gr::scale_draw(draw, k))]);
    }
    seed_ = seed;
    epoch_ = epoch;
  }

  void check_outputs(std::span<DLTensor* const> outputs, int64_t count) const {
    const bool ok = outputs.size() == 2 && outputs[0]->shape[0] == count &&
                    outputs[1]->shape[0] == count && gr_dtype_of(outputs[0]->dtype) == GR_FLOAT32 &&
                    gr_dtype_of(outputs[1]->dtype) == GR_INT64 &&
                    gr::row_of<float>(*outputs[0], 0).size() == static_cast<size_t>(row_elements_);
    gr::require(ok, GR_INVALID_ARGUMENT, "outputs", "wanted float32 [", count, ", ...] of ",
                row_elements_, " elements a row and int64 [", count, "]");
  }

  std::string features_name_, labels_name_, summary_, identity_;
  std::vector<float> features_;
  std::vector<int64_t> labels_;
  int64_t row_elements_ = 0;
  gr_data_output_t outputs_[2] = {};
  gr_data_info_t info_ = {};
  std::vector<int64_t> order_;  // of the training samples in epoch_ under seed_
  int64_t epoch_ = -1;
  uint64_t seed_ = 0;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.arrays", "1.0.0", gr::Data<Arrays>)
