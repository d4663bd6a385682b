// SPDX-License-Identifier: Apache-2.0
// Memory for the tensors of one batch, as the outputs of a data source have them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.hpp"
#include "gradrack/data.h"

namespace gradrack {

/// Sizes of the symbols that gr.batch/1 declares, in its order; 0 beyond them.
using BatchSizes = std::array<int64_t, GR_MAX_BATCH_SYMBOLS>;

/// What one batch is.
struct BatchDescription {
  size_t set = 0;  ///< index into Feed::objective_sets(); 0 where there are none
  BatchSizes sizes = {};
};

/// A dense tensor in memory of its own.
class BatchTensor {
 public:
  /// Gives it that shape; allocates nothing where it has it already.
  DLTensor* reshape(gr_dtype_t dtype, const int64_t* dims, uint32_t rank);
  const std::vector<std::byte>& bytes() const { return bytes_; }
  const DLTensor& tensor() const { return tensor_; }

 private:
  std::vector<std::byte> bytes_;
  std::vector<int64_t> dims_, strides_;
  DLTensor tensor_ = {};
};

/// A batch that waits to be used.
struct PreparedBatch {
  BatchDescription description;
  std::vector<BatchTensor> tensors;  ///< by output
  std::vector<DLTensor*> pointers;   ///< to them
};

}  // namespace gradrack
