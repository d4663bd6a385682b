// SPDX-License-Identifier: Apache-2.0
// HostArray: a dense tensor in host memory whose elements are read and written as doubles.
//
// What goes to a backend and comes back from it. Its conversions of 16 bits are its own, not those
// of the SDK, which backends may use. Invariant: `bytes` holds exactly the elements of `dims`,
// row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradrack/tensor.h"

namespace gradrack::conform {

struct HostArray {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  HostArray() = default;
  /// All zero.
  HostArray(gr_dtype_t type, std::vector<int64_t> shape);
  HostArray(gr_dtype_t type, std::vector<int64_t> shape, const std::vector<double>& numbers);

  int64_t count() const;
  double number(int64_t k) const;
  void set_number(int64_t k, double number);
  std::vector<double> numbers() const;
};

/// The nearest number that `dtype` can hold (ties to even); bool: 0 or 1.
double round_to(gr_dtype_t dtype, double number);

}  // namespace gradrack::conform
