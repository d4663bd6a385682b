// SPDX-License-Identifier: Apache-2.0
// Data plugin `figures`: its extension gr.preview/1.
#include <algorithm>
#include <map>

#include "gradrack/preview.h"
#include "tests/unit/plugins/figures_batch.hpp"

namespace gradrack {
namespace {

using testing::FiguresBatch;
using testing::Instance;
using testing::responsible_cells;

constexpr int64_t kSide = 64, kPanel = 320, kWidth = 2 * kPanel + 4;
const char* const kBatchNames[] = {"images", "targets.p3", "targets.p4", "targets.p5"};

/// Outputs of a model that sees the truth: the maps' numbers where a cell is responsible, and a
/// low score elsewhere.
struct Outputs {
  Outputs(const FiguresBatch& batch, double score) {
    for (size_t k = 1; k < 4; ++k) {
      const std::string scale = std::string(".p") + std::to_string(k + 2);
      const int64_t side = batch.dims[k][2];
      add("box" + scale, batch, k, 0, 4, side);
      add("point" + scale, batch, k, 5, 51, side);
      std::vector<float>& scores = add("class" + scale, batch, k, 4, 1, side);
      for (float& value : scores) value = value > 0 ? static_cast<float>(score) : -9.0F;
    }
  }
  /// Channels [first, first + count) of map k.
  std::vector<float>& add(const std::string& name, const FiguresBatch& batch, size_t k,
                          int64_t first, int64_t count, int64_t side) {
    Tensor& tensor = tensors[name];
    for (int64_t row = 0; row < batch.rows; ++row) {
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t at = 0; at < side * side; ++at) {
          tensor.numbers.push_back(batch.at(k, row, first + c, at / side, at % side));
        }
      }
    }
    tensor.dims = {batch.rows, count, side, side};
    tensor.strides = {count * side * side, side * side, side, 1};
    tensor.view = {tensor.numbers.data(), {kDLCPU, 0},           4, gr_dl_dtype(GR_FLOAT32),
                   tensor.dims.data(),    tensor.strides.data(), 0};
    return tensor.numbers;
  }
  std::vector<gr_named_tensor_t> list() const {
    std::vector<gr_named_tensor_t> out;
    for (const auto& [name, tensor] : tensors) out.push_back({name.c_str(), &tensor.view});
    return out;
  }

  struct Tensor {
    std::vector<float> numbers;
    std::vector<int64_t> dims, strides;
    DLTensor view = {};
  };
  std::map<std::string, Tensor> tensors;
};

class FiguresPreview : public ::testing::Test {
 protected:
  FiguresPreview()
      : plugin_(testing::figures_factory(), {{"size", "64"}, {"most_figures", "1"}}),
        batch_(plugin_, testing::train_request(3, 0, 2)) {
    preview_ =
        static_cast<const gr_preview_t*>(plugin_->get_extension(plugin_.self(), GR_EXT_PREVIEW));
    for (size_t k = 0; k < 4; ++k) named_.push_back({kBatchNames[k], &batch_.tensors[k]});
  }

  int32_t draw(const std::vector<gr_named_tensor_t>& outputs, int64_t row) {
    image_.assign(static_cast<size_t>(kPanel * kWidth * 3), 7);
    int64_t dims[] = {kPanel, kWidth, 3}, strides[] = {kWidth * 3, 3, 1};
    DLTensor image = {image_.data(), {kDLCPU, 0}, 3, gr_dl_dtype(GR_UINT8), dims, strides, 0};
    gr_preview_request_t request = {};
    request.struct_size = sizeof request;
    request.row = row;
    request.batch = named_.data();
    request.batch_count = static_cast<uint32_t>(named_.size());
    request.outputs = outputs.data();
    request.output_count = static_cast<uint32_t>(outputs.size());
    error_ = {};
    return preview_->draw(preview_->self, &request, &image, &error_);
  }
  /// Columns of one panel, row after row.
  std::vector<uint8_t> panel(int64_t first_column) const {
    std::vector<uint8_t> out;
    for (int64_t y = 0; y < kPanel; ++y) {
      const auto begin = image_.begin() + (y * kWidth + first_column) * 3;
      out.insert(out.end(), begin, begin + kPanel * 3);
    }
    return out;
  }

  Instance<gr_data_t> plugin_;
  FiguresBatch batch_;
  const gr_preview_t* preview_ = nullptr;
  std::vector<gr_named_tensor_t> named_;
  std::vector<uint8_t> image_;
  gr_error_t error_ = {};
};

TEST_F(FiguresPreview, HasASize) {
  ASSERT_NE(preview_, nullptr);
  int64_t height = 0, width = 0;
  ASSERT_EQ(preview_->size(preview_->self, &height, &width, &error_), GR_OK);
  EXPECT_EQ(height, kPanel);
  EXPECT_EQ(width, kWidth);
  EXPECT_EQ(plugin_->get_extension(plugin_.self(), "com.acme.none/1"), nullptr);
}

// Row 0 always has points, so a model that says the truth gives two panels alike.
TEST_F(FiguresPreview, DrawsPredictionsAsItDrawsTheTruth) {
  Outputs outputs(batch_, 5);
  for (auto& [name, tensor] : outputs.tensors) {
    if (name.rfind("point", 0) != 0) continue;
    for (size_t k = 0; k < tensor.numbers.size(); ++k) {  // flags become logits
      const auto side = static_cast<size_t>(tensor.dims[2]);
      if (k / (side * side) % 51 >= 34) tensor.numbers[k] = tensor.numbers[k] == 2 ? 5 : -5;
    }
  }
  ASSERT_EQ(draw(outputs.list(), 0), GR_OK) << error_.message;
  EXPECT_EQ(panel(0), panel(kPanel + 4));
  const std::vector<uint8_t> with = panel(0);
  const Outputs unsure(batch_, -5);
  ASSERT_EQ(draw(unsure.list(), 0), GR_OK) << error_.message;
  EXPECT_EQ(panel(0), with);
  EXPECT_NE(panel(kPanel + 4), with);  // nothing found: the dimmed image alone
}

TEST_F(FiguresPreview, NamesWhatIsMissingOrMisshapen) {
  Outputs outputs(batch_, 5);
  outputs.tensors["point.p4"].dims[1] = 50;
  EXPECT_EQ(draw(outputs.list(), 0), GR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.field, "point.p4");
  outputs.tensors.erase("box.p3");
  EXPECT_EQ(draw(outputs.list(), 0), GR_NOT_FOUND);
  EXPECT_STREQ(error_.field, "box.p3");
  const Outputs whole(batch_, 5);
  EXPECT_EQ(draw(whole.list(), 2), GR_INVALID_ARGUMENT);  // there are rows 0 and 1
}

}  // namespace
}  // namespace gradrack
