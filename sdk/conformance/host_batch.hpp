// SPDX-License-Identifier: Apache-2.0
// HostBatch: one batch of a data plugin in host memory, with guard bytes around each tensor.
//
// Makes the calls itself instead of using core/data/feed.hpp, which refuses some faults that the
// kit wants to see and name.
#pragma once

#include <vector>

#include "gradrack/data.h"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {

class HostBatch {
 public:
  /// Asks `info` and checks it: outputs with names, known dtypes, "batch" first, positive numbers
  /// after it.
  static Result<HostBatch> make(const gr_data_t& table, Use* use);

  const gr_data_info_t& info() const { return info_; }
  const gr_data_output_t& output(size_t k) const;
  size_t output_count() const { return info_.output_count; }

  /// Rows of a batch, as `rows` says.
  Result<int64_t> rows(int32_t split, uint64_t seed, int64_t index, int64_t batch_size);
  /// Fills the tensors with a batch. The error is the plugin's, or says that it wrote around them.
  Status fetch(int32_t split, uint64_t seed, int64_t index, int64_t batch_size);

  /// What tensors, and the guards around them, hold before later fetches.
  void set_background(unsigned char byte) { background_ = byte; }
  /// Rows of the last fetch.
  int64_t fetched_rows() const { return rows_; }
  /// Bytes of output k of the last fetch, row after row.
  const unsigned char* bytes(size_t k) const;
  size_t row_bytes(size_t k) const;
  void add_to(Digest* digest) const;
  /// Output k's integers (int64, int32, uint8); empty for other dtypes.
  std::vector<int64_t> integers(size_t k) const;

 private:
  HostBatch() = default;
  const gr_data_t* table_ = nullptr;
  Use* use_ = nullptr;
  gr_data_info_t info_ = {};
  int64_t rows_ = 0;
  unsigned char background_ = 0xC3;
  std::vector<std::vector<unsigned char>> blocks_;
};

}  // namespace gradrack::conform
