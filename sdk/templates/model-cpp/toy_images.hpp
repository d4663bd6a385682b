// SPDX-License-Identifier: Apache-2.0
// Data source `my_model_toy`: endless 8x8 images, so that the model trains before you have data.
//
// Class k has one bright row or column in noise. Invariant: a batch is a function of (seed, split,
// index) alone. It is no example of a data source: that is `gradrack plugins new data`.
#pragma once

#include <algorithm>

#include "gradrack/data.hpp"
#include "gradrack/philox.h"

class ToyImages {
 public:
  static constexpr const char* kName = "my_model_toy";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "8x8 images of 10 classes, a bright row or column each.";

  explicit ToyImages(const gradrack::sdk::Options&) {
    outputs_[0] = {"images", GR_FLOAT32, 4, {{0, "batch"}, {1, nullptr}, {8, nullptr}}, 0};
    outputs_[0].dims[3] = {8, nullptr};
    outputs_[1] = {"labels", GR_INT64, 1, {{0, "batch"}}, kClasses};
    info_.struct_size = sizeof info_;
    info_.outputs = outputs_;
    info_.output_count = 2;
    info_.output_stride = sizeof outputs_[0];
    info_.classes = kClasses;
    info_.train_items = 1000;
    info_.validation_items = 200;
    info_.summary = "made-up 8x8 images";
  }

  const gr_data_info_t& info() const { return info_; }

  int64_t rows(const gr_batch_request_t& r) const {
    if (r.split == GR_SPLIT_TRAIN) return r.batch_size;
    if (r.index > info_.validation_items / r.batch_size) return 0;
    return std::min(r.batch_size, info_.validation_items - r.index * r.batch_size);
  }

  void batch(const gr_batch_request_t& r, std::span<DLTensor* const> outputs) const {
    const int64_t count = rows(r);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t image = r.index * r.batch_size + row;
      const auto pixels = gradrack::sdk::row_of<float>(*outputs[0], row);
      const int64_t label = image % kClasses;
      for (int64_t p = 0; p < 64; ++p) {
        const bool bright = label < 5 ? p / 8 == label : p % 8 == label - 5;
        pixels[static_cast<size_t>(p)] = noise(r, image, p) + (bright ? 0.5f : 0.0f);
      }
      static_cast<int64_t*>(outputs[1]->data)[row] = label;
    }
  }

 private:
  static constexpr int64_t kClasses = 10;

  static float noise(const gr_batch_request_t& r, int64_t image, int64_t pixel) {
    const auto i = static_cast<uint64_t>(image);
    const uint32_t counter[4] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                                 static_cast<uint32_t>(pixel), static_cast<uint32_t>(r.split)};
    uint32_t draw[4];
    gr_philox4x32(counter, r.seed, draw);
    return static_cast<float>(gr_uniform24(draw[0]));
  }

  gr_data_output_t outputs_[2] = {};
  gr_data_info_t info_ = {};
};
