// SPDX-License-Identifier: Apache-2.0
// For tests of data plugin `figures`: a batch with its image and maps, read as the tests need them.
#pragma once

#include <array>

#include "tests/unit/plugins/batch.hpp"

namespace gradrack::testing {

inline const gr_factory_t* figures_factory() {
  return load_factory("gradrack_data_figures", "data", "figures");
}

/// A batch of all four outputs: images, targets.p3, targets.p4, targets.p5.
struct FiguresBatch {
  FiguresBatch(const Instance<gr_data_t>& plugin, const gr_batch_request_t& request) {
    gr_data_info_t info = {};
    info.struct_size = sizeof info;
    gr_error_t err = {};
    EXPECT_EQ(plugin->info(plugin.self(), &info, &err), GR_OK);
    status = plugin->rows(plugin.self(), &request, &rows, &err);
    if (status != GR_OK || info.output_count != 4) return;
    std::array<DLTensor*, 4> outputs = {};
    for (size_t k = 0; k < outputs.size(); ++k) {
      numbers[k].assign(static_cast<size_t>(rows * row_elements(info.outputs[k])), -1.0F);
      tensors[k] = tensor_over(numbers[k].data(), info.outputs[k], rows, &dims[k]);
      outputs[k] = &tensors[k];
    }
    status = plugin->batch(plugin.self(), &request, outputs.data(), 4, &err);
    EXPECT_EQ(status, GR_OK) << err.message;
  }
  FiguresBatch(const FiguresBatch&) = delete;
  FiguresBatch& operator=(const FiguresBatch&) = delete;

  /// Element of output `k`, [rows, channels, side, side].
  float at(size_t k, int64_t row, int64_t channel, int64_t y, int64_t x) const {
    const int64_t channels = dims[k][1], side = dims[k][2];
    return numbers[k][static_cast<size_t>(((row * channels + channel) * side + y) * side + x)];
  }
  /// Output `k` of one row.
  std::vector<float> row_of(size_t k, int64_t row) const {
    const auto size = static_cast<int64_t>(numbers[k].size()) / rows;
    return {numbers[k].begin() + row * size, numbers[k].begin() + (row + 1) * size};
  }

  int32_t status = GR_INTERNAL;
  int64_t rows = 0;
  std::array<std::vector<float>, 4> numbers;
  std::array<std::vector<int64_t>, 4> dims;
  std::array<DLTensor, 4> tensors = {};
};

/// A cell that is responsible for a figure.
struct ResponsibleCell {
  size_t output;  ///< 1 to 3
  int64_t row, y, x;
  double stride, centre_x, centre_y;
};

inline std::vector<ResponsibleCell> responsible_cells(const FiguresBatch& batch) {
  std::vector<ResponsibleCell> cells;
  for (size_t k = 1; k < 4; ++k) {
    const int64_t side = batch.dims[k][2];
    const double stride = static_cast<double>(batch.dims[0][2]) / static_cast<double>(side);
    for (int64_t row = 0; row < batch.rows; ++row) {
      for (int64_t at = 0; at < side * side; ++at) {
        const int64_t y = at / side, x = at % side;
        if (batch.at(k, row, 4, y, x) == 0) continue;
        cells.push_back({k, row, y, x, stride, (static_cast<double>(x) + 0.5) * stride,
                         (static_cast<double>(y) + 0.5) * stride});
      }
    }
  }
  return cells;
}

}  // namespace gradrack::testing
