// SPDX-License-Identifier: Apache-2.0
// Numbers between the host's double and int64 and the bytes of a tensor's dtype.
//
// Used where constants, initial values and scalars become storage. Rounds once, to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.hpp"
#include "gradrack/tensor.h"

namespace gradrack {

/// Writes `count` numbers as `dtype` to `out`. bool becomes 0 or 1. GR_OUT_OF_RANGE when an integer
/// dtype cannot hold a number.
Status write_numbers(gr_dtype_t dtype, std::span<const double> numbers, void* out);
Status write_numbers(gr_dtype_t dtype, std::span<const int64_t> numbers, void* out);
/// Reads one element as a double.
Result<double> read_number(gr_dtype_t dtype, const void* at);
/// Elements of `from` as elements of `to`, by way of double.
Result<std::vector<std::byte>> convert_numbers(std::span<const std::byte> bytes, gr_dtype_t from,
                                               gr_dtype_t to);

}  // namespace gradrack
