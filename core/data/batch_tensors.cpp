// SPDX-License-Identifier: Apache-2.0
// BatchTensor: see batch_tensors.hpp.
#include "core/data/batch_tensors.hpp"

#include <algorithm>

namespace gradrack {

DLTensor* BatchTensor::reshape(gr_dtype_t dtype, const int64_t* dims, uint32_t rank) {
  if (dims_.size() == rank && std::equal(dims_.begin(), dims_.end(), dims)) return &tensor_;
  dims_.assign(dims, dims + rank);
  strides_.assign(rank, 1);
  int64_t count = 1;
  for (size_t d = rank; d-- > 0;) {
    strides_[d] = count;
    count *= dims_[d];
  }
  bytes_.resize(static_cast<size_t>(count * gr_dtype_bytes(dtype)));
  tensor_ = {bytes_.data(),
             {kDLCPU, 0},
             static_cast<int32_t>(rank),
             gr_dl_dtype(dtype),
             dims_.data(),
             strides_.data(),
             0};
  return &tensor_;
}

}  // namespace gradrack
