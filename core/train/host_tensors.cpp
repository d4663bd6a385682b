// SPDX-License-Identifier: Apache-2.0
// See host_tensors.hpp.
#include "core/train/host_tensors.hpp"

#include <cstring>

namespace gradrack {
namespace {

size_t product(const std::vector<int64_t>& dims, size_t begin, size_t end) {
  size_t count = 1;
  for (size_t k = begin; k < end; ++k) count *= static_cast<size_t>(dims[k]);
  return count;
}

/// How a tensor lies in memory seen from one of its axes.
struct Runs {
  Runs(const std::vector<int64_t>& dims, gr_dtype_t dtype, int64_t axis)
      : count(product(dims, 0, static_cast<size_t>(axis))),
        step(product(dims, static_cast<size_t>(axis) + 1, dims.size()) *
             static_cast<size_t>(gr_dtype_bytes(dtype))),
        bytes(step * static_cast<size_t>(dims[static_cast<size_t>(axis)])) {}
  size_t count;  // runs of memory in which the axis is walked once
  size_t step;   // bytes of one element of the axis
  size_t bytes;  // of a run
};

}  // namespace

std::vector<int64_t> transposed(const std::vector<int64_t>& dims) {
  GR_CHECK(dims.size() == 2);
  return {dims[1], dims[0]};
}

HostTensor transposed(const HostTensor& matrix) {
  HostTensor out{matrix.dtype, transposed(matrix.dims), {}};
  out.bytes.resize(matrix.bytes.size());
  const auto width = static_cast<size_t>(gr_dtype_bytes(matrix.dtype));
  const auto rows = static_cast<size_t>(matrix.dims[0]);
  const auto columns = static_cast<size_t>(matrix.dims[1]);
  constexpr size_t kTile = 32;  // both sides of a tile stay in the cache
  for (size_t row = 0; row < rows; row += kTile) {
    for (size_t column = 0; column < columns; column += kTile) {
      for (size_t r = row; r < std::min(row + kTile, rows); ++r) {
        for (size_t c = column; c < std::min(column + kTile, columns); ++c) {
          std::memcpy(out.bytes.data() + (c * rows + r) * width,
                      matrix.bytes.data() + (r * columns + c) * width, width);
        }
      }
    }
  }
  return out;
}

std::vector<int64_t> side_by_side(std::span<const std::vector<int64_t>> dims, int64_t axis) {
  GR_CHECK(!dims.empty());
  std::vector<int64_t> sum = dims[0];
  const auto at = static_cast<size_t>(axis);
  if (at >= sum.size()) return {};
  for (const std::vector<int64_t>& each : dims.subspan(1)) {
    if (each.size() != sum.size()) return {};
    for (size_t k = 0; k < sum.size(); ++k) {
      if (k != at && each[k] != sum[k]) return {};
    }
    sum[at] += each[at];
  }
  return sum;
}

HostTensor side_by_side(std::span<const HostTensor> parts, int64_t axis) {
  std::vector<std::vector<int64_t>> dims;
  for (const HostTensor& part : parts) dims.push_back(part.dims);
  HostTensor out{parts[0].dtype, side_by_side(dims, axis), {}};
  const Runs whole(out.dims, out.dtype, axis);
  out.bytes.resize(whole.count * whole.bytes);
  size_t offset = 0;
  for (const HostTensor& part : parts) {
    const Runs own(part.dims, part.dtype, axis);
    for (size_t run = 0; run < own.count && own.bytes > 0; ++run) {
      std::memcpy(out.bytes.data() + run * whole.bytes + offset,
                  part.bytes.data() + run * own.bytes, own.bytes);
    }
    offset += own.bytes;
  }
  return out;
}

HostTensor part_of(std::span<const std::byte> bytes, gr_dtype_t dtype,
                   const std::vector<int64_t>& dims, int64_t axis, int64_t first, int64_t count) {
  HostTensor out{dtype, dims, {}};
  out.dims[static_cast<size_t>(axis)] = count;
  const Runs whole(dims, dtype, axis), own(out.dims, dtype, axis);
  out.bytes.resize(own.count * own.bytes);
  for (size_t run = 0; run < own.count && own.bytes > 0; ++run) {
    std::memcpy(out.bytes.data() + run * own.bytes,
                bytes.data() + run * whole.bytes + static_cast<size_t>(first) * whole.step,
                own.bytes);
  }
  return out;
}

}  // namespace gradrack
