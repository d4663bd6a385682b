// SPDX-License-Identifier: Apache-2.0
// HostTensor: a dense tensor of any dtype in host memory, for tests.
//
// Invariant: `bytes` holds exactly the elements of `dims`, row-major.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack::test {

struct HostTensor {
  gr_dtype_t dtype = GR_FLOAT64;
  std::vector<int64_t> dims;
  std::vector<char> bytes;

  HostTensor() = default;
  HostTensor(gr_dtype_t type, std::vector<int64_t> shape);

  /// From numbers, converted to the dtype; as many as dims has elements.
  static HostTensor reals(gr_dtype_t dtype, std::vector<int64_t> dims,
                          const std::vector<double>& numbers);
  static HostTensor ints(gr_dtype_t dtype, std::vector<int64_t> dims,
                         const std::vector<int64_t>& numbers);

  int64_t count() const;
  /// Elements as double; integers and bools are converted.
  std::vector<double> numbers() const;
  double number(int64_t k) const;
  void set_number(int64_t k, double number);
};

}  // namespace gradrack::test
