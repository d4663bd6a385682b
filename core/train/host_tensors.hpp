// SPDX-License-Identifier: Apache-2.0
// Dense tensors of the host, laid out anew: transposed, taken apart, put side by side.
//
// For weights that others keep in another layout (mapped_weights.hpp). Bytes are moved, never
// converted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/run_once.hpp"

namespace gradrack {

/// Dims of a matrix the other way round.
std::vector<int64_t> transposed(const std::vector<int64_t>& dims);

/// `matrix` [R, C] as [C, R]; it must have two dims. [any]
HostTensor transposed(const HostTensor& matrix);

/// Dims of tensors side by side along `axis`: those of the first with the sum along the axis.
/// Empty: they do not fit, or `axis` is none of theirs.
std::vector<int64_t> side_by_side(std::span<const std::vector<int64_t>> dims, int64_t axis);

/// The tensors side by side along `axis`; they have one dtype, and dims that fit. [any]
HostTensor side_by_side(std::span<const HostTensor> parts, int64_t axis);

/// Elements [first, first + count) along `axis` of `bytes`, a tensor of `dtype` and `dims`. [any]
HostTensor part_of(std::span<const std::byte> bytes, gr_dtype_t dtype,
                   const std::vector<int64_t>& dims, int64_t axis, int64_t first, int64_t count);

}  // namespace gradrack
