// SPDX-License-Identifier: Apache-2.0
// Batches in host memory: see host_batch.hpp.
#include "sdk/conformance/host_batch.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "core/graph/graph.hpp"

namespace gradrack::conform {
namespace {

constexpr size_t kGuard = 64;

bool is_dtype(gr_dtype_t dtype) {
  for (const gr_dtype_t known : {GR_INT8, GR_INT32, GR_INT64, GR_UINT8, GR_FLOAT16, GR_FLOAT32,
                                 GR_FLOAT64, GR_BFLOAT16, GR_BOOL}) {
    if (dtype == known) return true;
  }
  return false;
}

Status check_output(const gr_data_output_t& output, size_t k) {
  const std::string what = fmt::format("info: output {}", k);
  if (output.name == nullptr || *output.name == '\0') return internal_error(what + " has no name");
  if (!is_dtype(output.dtype)) return internal_error(what + " has an unknown dtype");
  if (output.rank < 1 || output.rank > GR_MAX_RANK) return internal_error(what + ": rank");
  const char* first = output.dims[0].symbol;
  if (first == nullptr || std::string_view(first) != "batch") {
    return internal_error(what + ": the first dim is not the symbol \"batch\"");
  }
  for (uint32_t d = 1; d < output.rank; ++d) {
    if (output.dims[d].symbol != nullptr || output.dims[d].size < 0) {
      return internal_error(fmt::format("{}: dim {} is not a number", what, d));
    }
  }
  return {};
}

}  // namespace

Result<HostBatch> HostBatch::make(const gr_data_t& table, Use* use) {
  HostBatch batch;
  batch.table_ = &table;
  batch.use_ = use;
  batch.info_.struct_size = sizeof batch.info_;
  GR_TRY(call_plugin("info", use,
                     [&](gr_error_t* err) { return table.info(table.self, &batch.info_, err); }));
  if (batch.info_.output_count == 0 || batch.info_.outputs == nullptr ||
      batch.info_.output_stride < sizeof(gr_data_output_t)) {
    return internal_error("info: no outputs, or a stride shorter than an output");
  }
  for (size_t k = 0; k < batch.output_count(); ++k) GR_TRY(check_output(batch.output(k), k));
  batch.blocks_.resize(batch.output_count());
  return batch;
}

const gr_data_output_t& HostBatch::output(size_t k) const {
  const auto* first = reinterpret_cast<const char*>(info_.outputs);
  return *reinterpret_cast<const gr_data_output_t*>(first + k * info_.output_stride);
}

namespace {

gr_batch_request_t request_for(int32_t split, uint64_t seed, int64_t index, int64_t batch_size) {
  gr_batch_request_t request = {};
  request.struct_size = sizeof request;
  request.split = split;
  request.seed = seed;
  request.index = index;
  request.batch_size = batch_size;
  return request;
}

/// A dense tensor of an output's shape with `rows` rows.
struct BatchTensor {
  std::vector<int64_t> dims, strides;
  DLTensor tensor = {};
  BatchTensor(const gr_data_output_t& output, int64_t rows, void* data) {
    dims.push_back(rows);
    for (uint32_t d = 1; d < output.rank; ++d) dims.push_back(output.dims[d].size);
    strides.assign(dims.size(), 1);
    for (size_t d = dims.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * dims[d];
    tensor = {data,
              {kDLCPU, 0},
              static_cast<int32_t>(dims.size()),
              gr_dl_dtype(output.dtype),
              dims.data(),
              strides.data(),
              0};
  }
};

}  // namespace

size_t HostBatch::row_bytes(size_t k) const {
  const gr_data_output_t& out = output(k);
  auto bytes = static_cast<size_t>(gr_dtype_bytes(out.dtype));
  for (uint32_t d = 1; d < out.rank; ++d) bytes *= static_cast<size_t>(out.dims[d].size);
  return bytes;
}

Result<int64_t> HostBatch::rows(int32_t split, uint64_t seed, int64_t index, int64_t batch_size) {
  const gr_batch_request_t request = request_for(split, seed, index, batch_size);
  int64_t rows = -1;
  GR_TRY(call_plugin("rows", use_, [&](gr_error_t* err) {
    return table_->rows(table_->self, &request, &rows, err);
  }));
  if (rows < 0 || rows > batch_size) {
    return internal_error(fmt::format("rows answers {} of {}", rows, batch_size));
  }
  return rows;
}

Status HostBatch::fetch(int32_t split, uint64_t seed, int64_t index, int64_t batch_size) {
  GR_ASSIGN(rows_, rows(split, seed, index, batch_size));
  if (rows_ == 0) return {};
  const gr_batch_request_t request = request_for(split, seed, index, batch_size);
  std::vector<BatchTensor> tensors;
  tensors.reserve(output_count());
  std::vector<DLTensor*> pointers;
  for (size_t k = 0; k < output_count(); ++k) {
    const size_t bytes = row_bytes(k) * static_cast<size_t>(rows_);
    blocks_[k].assign(bytes + 2 * kGuard, background_);
    tensors.emplace_back(output(k), rows_, blocks_[k].data() + kGuard);
    pointers.push_back(&tensors.back().tensor);
  }
  GR_TRY(call_plugin("batch", use_, [&](gr_error_t* err) {
    return table_->batch(table_->self, &request, pointers.data(),
                         static_cast<uint32_t>(pointers.size()), err);
  }));
  for (size_t k = 0; k < output_count(); ++k) {
    for (size_t g = 0; g < kGuard; ++g) {
      if (blocks_[k][g] == background_ && blocks_[k][blocks_[k].size() - 1 - g] == background_) {
        continue;
      }
      return internal_error(
          fmt::format("batch writes outside the tensor of output '{}'", output(k).name));
    }
  }
  return {};
}

const unsigned char* HostBatch::bytes(size_t k) const { return blocks_[k].data() + kGuard; }

void HostBatch::add_to(Digest* digest) const {
  digest->add(rows_);
  for (size_t k = 0; rows_ > 0 && k < output_count(); ++k) {
    digest->add(bytes(k), row_bytes(k) * static_cast<size_t>(rows_));
  }
}

std::vector<int64_t> HostBatch::integers(size_t k) const {
  std::vector<int64_t> numbers;
  const gr_dtype_t dtype = output(k).dtype;
  const auto size = static_cast<size_t>(gr_dtype_bytes(dtype));
  if (dtype != GR_INT64 && dtype != GR_INT32 && dtype != GR_UINT8) return numbers;
  const size_t count = row_bytes(k) / size * static_cast<size_t>(rows_);
  for (size_t i = 0; i < count; ++i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    const unsigned char* at = bytes(k) + i * size;
    if (dtype == GR_INT64) std::memcpy(&wide, at, size);
    if (dtype == GR_INT32) std::memcpy(&narrow, at, size), wide = narrow;
    if (dtype == GR_UINT8) wide = *at;
    numbers.push_back(wide);
  }
  return numbers;
}

}  // namespace gradrack::conform
