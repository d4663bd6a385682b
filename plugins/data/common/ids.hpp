// SPDX-License-Identifier: Apache-2.0
// Token ids in as few bytes as their vocabulary needs: a view of them, and a list that grows.
//
// Invariant: a width is 1, 2 or 4 bytes, little-endian, unsigned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace corpus {

/// Bytes an id of [0, vocab) takes.
int id_width(int64_t vocab);

/// Ids that something else owns.
class IdView {
 public:
  IdView() = default;
  IdView(const std::byte* data, int width, int64_t count)
      : data_(data), width_(width), count_(count) {}

  int64_t size() const { return count_; }
  int width() const { return width_; }
  /// The bytes of all ids.
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(count_ * width_)}; }
  int64_t at(int64_t position) const;
  /// Ids from `first` on; first + out.size() <= size().
  void copy(int64_t first, std::span<int64_t> out) const;
  /// Position of the first id of [first, first + count) that is not below `limit`; -1: there is
  /// none.
  int64_t find_beyond(int64_t limit, int64_t first, int64_t count) const;
  /// The largest id of [first, first + count); -1 of none.
  int64_t largest(int64_t first, int64_t count) const;

 private:
  const std::byte* data_ = nullptr;
  int width_ = 1;
  int64_t count_ = 0;
};

/// Ids of its own.
class IdList {
 public:
  explicit IdList(int64_t vocab) : width_(id_width(vocab)) {}

  /// Each in [0, vocab).
  void append(std::span<const int32_t> ids);
  int64_t size() const { return static_cast<int64_t>(bytes_.size()) / width_; }
  IdView view() const { return {bytes_.data(), width_, size()}; }

 private:
  int width_;
  std::vector<std::byte> bytes_;
};

}  // namespace corpus
