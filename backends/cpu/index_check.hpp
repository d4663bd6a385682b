// SPDX-License-Identifier: Apache-2.0
// Indices: an int32 or int64 tensor of indices or labels, checked before it is used.
//
// Invariant: a kernel calls check() on all of them first, so that at() needs no test.
#pragma once

#include <cstdint>
#include <string>

#include "gradrack/status.h"
#include "gradrack/tensor.h"

namespace gradrack::cpu {

/// Fills the error of a label outside [0, classes) at `position`.
inline void fail_label(int64_t label, int64_t position, int64_t classes, bool has_ignore,
                       gr_error_t* err) {
  const std::string text = "label " + std::to_string(label) + " at position " +
                           std::to_string(position) + " is outside [0, " + std::to_string(classes) +
                           ")" + (has_ignore ? " and is not ignore_index" : "");
  gr_fail(err, GR_OUT_OF_RANGE, "SoftmaxCrossEntropyLoss", text.c_str());
}

class Indices {
 public:
  Indices(const DLTensor* tensor, gr_dtype_t dtype)
      : wide_(dtype == GR_INT64 ? static_cast<const int64_t*>(tensor->data) : nullptr),
        narrow_(dtype == GR_INT32 ? static_cast<const int32_t*>(tensor->data) : nullptr) {}

  int64_t raw(int64_t k) const { return wide_ != nullptr ? wide_[k] : narrow_[k]; }
  /// Negative ones count from the end of `size`.
  int64_t at(int64_t k, int64_t size) const {
    const int64_t index = raw(k);
    return index < 0 ? index + size : index;
  }
  /// False, with the error filled, when one of `count` indices is outside [-size, size).
  bool check(int64_t count, int64_t size, const char* op, gr_error_t* err) const {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t index = raw(k);
      if (index >= -size && index < size) continue;
      const std::string text = "index " + std::to_string(index) + " at position " +
                               std::to_string(k) + " is outside [" + std::to_string(-size) + ", " +
                               std::to_string(size) + ")";
      gr_fail(err, GR_OUT_OF_RANGE, op, text.c_str());
      return false;
    }
    return true;
  }

 private:
  const int64_t* wide_;
  const int32_t* narrow_;
};

}  // namespace gradrack::cpu
