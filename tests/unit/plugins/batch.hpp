// SPDX-License-Identifier: Apache-2.0
// For tests of data plugins: asks for one batch and owns the tensors that receive it.
#pragma once

#include <vector>

#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack::testing {

/// Batch of a source with two outputs: first of element type E, second of int64.
template <typename E>
struct Batch {
  int32_t status = GR_INTERNAL;
  gr_error_t error = {};
  int64_t rows = 0;
  std::vector<E> first;
  std::vector<int64_t> second;
};

/// Size of a row of declared output k.
inline int64_t row_elements(const gr_data_output_t& output) {
  int64_t elements = 1;
  for (uint32_t k = 1; k < output.rank; ++k) elements *= output.dims[k].size;
  return elements;
}

/// A dense tensor over `data`; `dims` gets its shape and strides.
inline DLTensor tensor_over(void* data, const gr_data_output_t& output, int64_t rows,
                            std::vector<int64_t>* dims) {
  dims->assign(output.rank * 2, 1);
  (*dims)[0] = rows;
  for (uint32_t k = 1; k < output.rank; ++k) (*dims)[k] = output.dims[k].size;
  for (uint32_t k = output.rank; k > 1; --k) {
    (*dims)[output.rank + k - 2] = (*dims)[output.rank + k - 1] * (*dims)[k - 1];
  }
  return {data,
          {kDLCPU, 0},
          static_cast<int32_t>(output.rank),
          gr_dl_dtype(output.dtype),
          dims->data(),
          dims->data() + output.rank,
          0};
}

template <typename E>
Batch<E> get_batch(const Instance<gr_data_t>& plugin, const gr_batch_request_t& request) {
  Batch<E> batch;
  gr_data_info_t info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(plugin->info(plugin.self(), &info, &batch.error), GR_OK);
  batch.status = plugin->rows(plugin.self(), &request, &batch.rows, &batch.error);
  if (batch.status != GR_OK) return batch;
  batch.first.assign(static_cast<size_t>(batch.rows * row_elements(info.outputs[0])), E{});
  batch.second.assign(static_cast<size_t>(batch.rows * row_elements(info.outputs[1])), -1);
  std::vector<int64_t> dims[2];
  DLTensor tensors[2] = {tensor_over(batch.first.data(), info.outputs[0], batch.rows, &dims[0]),
                         tensor_over(batch.second.data(), info.outputs[1], batch.rows, &dims[1])};
  DLTensor* const outputs[2] = {&tensors[0], &tensors[1]};
  batch.status = plugin->batch(plugin.self(), &request, outputs, 2, &batch.error);
  return batch;
}

inline gr_batch_request_t train_request(uint64_t seed, int64_t index, int64_t batch_size) {
  return {sizeof(gr_batch_request_t), GR_SPLIT_TRAIN, seed, index, batch_size};
}
inline gr_batch_request_t validation_request(int64_t index, int64_t batch_size) {
  return {sizeof(gr_batch_request_t), GR_SPLIT_VALIDATION, 0, index, batch_size};
}

}  // namespace gradrack::testing
