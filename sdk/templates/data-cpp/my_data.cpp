// SPDX-License-Identifier: Apache-2.0
// Data source `my_data`: small grey images made on the spot, one bright patch for each class.
//
// Row r of a batch: a label drawn evenly, noise everywhere, and 1 added to the patch of that label.
// Invariant: a batch is a function of (options, seed, split, index) alone, so that a run can be
// repeated and resumed; no generator keeps a state. Dims: B rows, H = W = 8 pixels.
// Change first: the options, the outputs in the constructor, and fill_row.
#include <algorithm>

#include "gradrack/data.hpp"
#include "gradrack/philox.h"

namespace {

namespace gr = gradrack::sdk;

constexpr int64_t kSide = 8, kPixels = kSide * kSide;
constexpr int64_t kPatch = 2;  // pixels; so 4 x 4 patches fit: at most 16 classes

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_INT("classes", "10", 2, 16, "classes, a patch of 2x2 pixels each"),
    GR_OPT_FLOAT("noise", "0.5", 0, 10, "width of the even noise in each pixel"),
    GR_OPT_INT("train_items", "2000", 1, 1e9, "images in the training split"),
    GR_OPT_INT("validation_items", "200", 0, 1e9, "images in the validation split"),
};

class MyData {
 public:
  static constexpr const char* kName = "my_data";  // `plugin: my_data`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Synthetic images with a bright patch for each class.";
  static constexpr auto& kOptions = kOptionTable;

  explicit MyData(const gr::Options& options) : noise_(options.get<double>("noise")) {
    outputs_[0].name = "images";  // float32 [B, 1, H, W]; a model's input has the same name
    outputs_[0].dtype = GR_FLOAT32;
    outputs_[0].rank = 4;
    outputs_[0].dims[0] = {0, "batch"};
    outputs_[0].dims[1] = {1, nullptr};
    outputs_[0].dims[2] = outputs_[0].dims[3] = {kSide, nullptr};
    outputs_[1].name = "labels";  // int64 [B], each in [0, limit)
    outputs_[1].dtype = GR_INT64;
    outputs_[1].rank = 1;
    outputs_[1].dims[0] = {0, "batch"};
    outputs_[1].limit = options.get<int64_t>("classes");

    summary_ = gr::text("8x8 images of ", outputs_[1].limit, " classes");
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.classes = outputs_[1].limit;
    info_.train_items = options.get<int64_t>("train_items");
    info_.validation_items = options.get<int64_t>("validation_items");
    info_.summary = summary_.c_str();
  }

  const gr_data_info_t& info() const { return info_; }

  // Training batches are always full; the last validation batch may be short, then come 0 rows.
  int64_t rows(const gr_batch_request_t& request) const {
    gr::require(request.index >= 0 && request.batch_size > 0, GR_INVALID_ARGUMENT, "index",
                "batch ", request.index, " of ", request.batch_size, " rows does not exist");
    if (request.split == GR_SPLIT_TRAIN) return request.batch_size;
    if (request.index > info_.validation_items / request.batch_size) return 0;
    return std::min(request.batch_size,
                    info_.validation_items - request.index * request.batch_size);
  }

  void batch(const gr_batch_request_t& request, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(request);
    gr::require(
        outputs.size() == 2 && outputs[0]->shape[0] == count && outputs[1]->shape[0] == count,
        GR_INVALID_ARGUMENT, "outputs", "wanted two tensors of ", count, " rows");
    for (int64_t row = 0; row < count; ++row) {
      // Which image: training draws one of its items, validation takes them in order.
      const auto place = static_cast<uint64_t>(request.index * request.batch_size + row);
      uint64_t item = place;
      if (request.split == GR_SPLIT_TRAIN) {
        item = gr::scale_draw(draw(request.seed, place, 0, kDrawItem).numbers,
                              static_cast<uint64_t>(info_.train_items));
      }
      static_cast<int64_t*>(outputs[1]->data)[row] =
          fill_row(item, request.split, gr::row_of<float>(*outputs[0], row));
    }
  }

 private:
  enum Purpose : uint32_t { kDrawItem = 1, kDrawLabel = 2, kDrawPixels = 4 };
  struct Draw {
    uint32_t numbers[4];
  };

  /// Four random numbers that depend on the arguments alone.
  static Draw draw(uint64_t seed, uint64_t place, uint32_t part, uint32_t purpose) {
    const uint32_t counter[4] = {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32),
                                 part, purpose};
    Draw out;
    gr_philox4x32(counter, seed, out.numbers);
    return out;
  }

  /// Writes image `item` of a split and returns its label. The images are the same for every seed;
  /// the seed decides which of them a batch holds.
  int64_t fill_row(uint64_t item, int32_t split, std::span<float> pixels) const {
    const auto key = static_cast<uint64_t>(split);
    const Draw d = draw(key, item, 0, kDrawLabel);
    const auto label =
        static_cast<int64_t>(gr::scale_draw(d.numbers, static_cast<uint64_t>(outputs_[1].limit)));
    const int64_t top = label / 4 * kPatch, left = label % 4 * kPatch;
    for (int64_t p = 0; p < kPixels; p += 4) {
      const Draw noise = draw(key, item, static_cast<uint32_t>(p), kDrawPixels);
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t y = (p + k) / kSide - top, x = (p + k) % kSide - left;
        const bool bright = y >= 0 && y < kPatch && x >= 0 && x < kPatch;
        pixels[static_cast<size_t>(p + k)] =
            static_cast<float>(noise_ * gr_uniform24(noise.numbers[k]) + (bright ? 1.0 : 0.0));
      }
    }
    return label;
  }

  double noise_;
  std::string summary_;
  gr_data_output_t outputs_[2] = {};
  gr_data_info_t info_ = {};
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_data", "1.0.0", gr::Data<MyData>)
