// SPDX-License-Identifier: Apache-2.0
// Host tensors of numbers, and back: for tests. [any]
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "core/exec/run_once.hpp"

namespace gradrack::testing {

/// `numbers`, row-major, as a tensor of `dims`; T is what `dtype` holds.
template <class T>
HostTensor tensor_of(gr_dtype_t dtype, std::vector<int64_t> dims, const std::vector<T>& numbers) {
  HostTensor tensor{dtype, std::move(dims), {}};
  tensor.bytes.resize(numbers.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
  return tensor;
}

template <class T>
std::vector<T> numbers_of(const HostTensor& tensor) {
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

}  // namespace gradrack::testing
