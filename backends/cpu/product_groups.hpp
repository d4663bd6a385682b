// SPDX-License-Identifier: Apache-2.0
// What groups of nodes around matrix products share: FusedMatMul nodes as terms and parts of a
// Product, and tiles of its finished sums as plain arrays. Used by product_groups.cpp and
// swiglu_groups.cpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backends/common/group.hpp"
#include "backends/cpu/context.hpp"
#include "backends/cpu/product.hpp"

namespace gradrack::cpu {

/// Reason text unless the node is one product of float32 or bfloat16 matrices: any rows of A by one
/// B, times 1.
std::string refuse_product(const host::NodeSpec& node);

/// Rows of the node's result, seen as a matrix.
int64_t product_rows(const host::NodeSpec& node);

/// How A and B of the node lie in memory, where they are stored as `a` and `b`.
FactorLayout layout_a(const host::NodeSpec& node, gr_dtype_t a);
FactorLayout layout_b(const host::NodeSpec& node, gr_dtype_t b);
int64_t product_depth(const host::NodeSpec& node);

/// Pointers of one run by place: a kernel allocates nothing.
class ProductPointers {
 public:
  static constexpr size_t kMost = 8;

  ProductPointers(const DLTensor* const* in, DLTensor* const* out, const std::vector<int>& a,
                  const std::vector<int>& b, const std::vector<int>& c) {
    for (size_t k = 0; k < a.size(); ++k) a_[k] = in[a[k]]->data;
    for (size_t k = 0; k < b.size(); ++k) b_[k] = in[b[k]]->data;
    for (size_t k = 0; k < c.size(); ++k) c_[k] = out[c[k]]->data;
  }
  ProductData data(const ProductFinish* finish = nullptr) const {
    return {a_.data(), b_.data(), c_.data(), finish};
  }

 private:
  std::array<const void*, kMost> a_{}, b_{};
  std::array<void*, kMost> c_{};
};

/// A matrix of float32 or bfloat16 whose rows lie one behind the other.
struct RowMajor {
  void* data = nullptr;
  bool narrow = false;
  int64_t columns = 0;
  bool stream = false;  // is written past the caches

  void* at(const ProductTile& tile) const {
    const int64_t first = tile.row * columns + tile.column;
    return static_cast<char*>(data) + first * (narrow ? 2 : 4);
  }
  /// Asks for a tile's numbers before they are read.
  void expect(const ProductTile& tile) const;
};

/// The numbers of a tile, row by row, without gaps.
class TileNumbers {
 public:
  static constexpr int64_t kMost = 32 * 32;

  explicit TileNumbers(const ProductTile& tile) : tile_(tile) {}
  void take_sums();
  void read(const RowMajor& from);
  void write(const RowMajor& to) const;
  int64_t count() const { return tile_.rows * tile_.columns; }
  float* data() { return numbers_; }
  const float* data() const { return numbers_; }

 private:
  const ProductTile& tile_;
  alignas(64) float numbers_[kMost];
};

}  // namespace gradrack::cpu
