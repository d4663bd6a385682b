// SPDX-License-Identifier: Apache-2.0
// For tests of next-token sources: batches of any number of int64 outputs, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/unit/plugins/batch.hpp"

namespace gradrack::testing {

using Columns = std::map<std::string, std::vector<int64_t>>;

inline gr_data_info_t info_of(const Instance<gr_data_t>& plugin) {
  gr_data_info_t info = {};
  info.struct_size = sizeof info;
  gr_error_t err = {};
  EXPECT_EQ(plugin->info(plugin.self(), &info, &err), GR_OK);
  return info;
}

/// Every output of a batch; empty, with a failed expectation, when the source refuses.
inline Columns columns_of(const Instance<gr_data_t>& plugin, const gr_batch_request_t& request) {
  const gr_data_info_t info = info_of(plugin);
  int64_t rows = 0;
  gr_error_t err = {};
  EXPECT_EQ(plugin->rows(plugin.self(), &request, &rows, &err), GR_OK) << err.message;
  Columns columns;
  std::vector<std::vector<int64_t>> dims(info.output_count);
  std::vector<DLTensor> tensors;
  for (uint32_t k = 0; k < info.output_count; ++k) {
    const gr_data_output_t& output = info.outputs[k];
    auto& column = columns[output.name];
    column.assign(static_cast<size_t>(rows * row_elements(output)), -7);
    tensors.push_back(tensor_over(column.data(), output, rows, &dims[k]));
  }
  std::vector<DLTensor*> pointers;
  for (DLTensor& tensor : tensors) pointers.push_back(&tensor);
  const int32_t code = plugin->batch(plugin.self(), &request, pointers.data(),
                                     static_cast<uint32_t>(pointers.size()), &err);
  EXPECT_EQ(code, GR_OK) << err.message;
  return code == GR_OK ? columns : Columns{};
}

/// The first token of each row of training batches [first, last).
inline std::vector<int64_t> first_tokens(const Instance<gr_data_t>& plugin, uint64_t seed,
                                         int64_t first, int64_t last, int64_t batch_size) {
  std::vector<int64_t> tokens;
  const auto block = static_cast<size_t>(info_of(plugin).block);
  for (int64_t index = first; index < last; ++index) {
    const Columns columns = columns_of(plugin, train_request(seed, index, batch_size));
    for (size_t k = 0; k < columns.at("tokens").size(); k += block) {
      tokens.push_back(columns.at("tokens")[k]);
    }
  }
  return tokens;
}

}  // namespace gradrack::testing
