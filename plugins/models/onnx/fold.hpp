// SPDX-License-Identifier: Apache-2.0
// Folding: nodes whose inputs are all known are computed while the file is read.
//
// Exporters compute shapes by nodes (Shape, Gather, Concat, ...); with fixed dims their results are
// numbers, which operators such as Reshape need. Invariant: a folded result is what the operator
// would give; it has at most kMostFolded elements, and all of a model kMostFoldedInAll, so that no
// file makes the reader compute long. What an operator does not take is left to the host to refuse.
#pragma once

#include "importer.hpp"

namespace gradrack::onnx {

inline constexpr int64_t kMostFolded = 1 << 20;
/// Reals beyond that are weights, whose nodes the graph keeps.
inline constexpr int64_t kMostFoldedReals = 1 << 12;
/// Elements read and made by all folding of a model; what is beyond is left to the run.
inline constexpr int64_t kMostFoldedInAll = 1 << 24;

/// True when the node was computed and its outputs defined; false: it has to be built. Errors are
/// those of the operator: wrong dims, an index out of range.
bool fold(NodeImport& n);

/// Elements of a tensor as numbers, for folding: integers, or reals.
struct Numbers {
  bool real = false;
  int32_t type = 0;  ///< TensorDataType
  std::vector<int64_t> dims;
  std::vector<int64_t> ints;
  std::vector<double> reals;

  /// size() is the product of dims.
  size_t size() const { return real ? reals.size() : ints.size(); }
  /// The element at `k` of `from`, appended.
  void append(const Numbers& from, size_t k) {
    real ? reals.push_back(from.reals[k]) : ints.push_back(from.ints[k]);
  }
  /// No elements, of the same type.
  Numbers empty_like(std::vector<int64_t> new_dims) const { return {real, type, new_dims, {}, {}}; }
};
Numbers numbers_of(const Tensor& tensor);
Tensor tensor_of(const Numbers& numbers);

/// Elements that are places, axes or dims; an error when they are not INT64 or INT32.
const std::vector<int64_t>& places_of(const Numbers& numbers);

/// `axis` of a tensor of rank `rank`, counted from the front.
size_t axis_of(int64_t axis, size_t rank);

// By family: the result for known inputs; false when this family does not have the operator.
bool fold_shape(NodeImport& n, std::vector<Numbers>& inputs, Numbers* out);
bool fold_arithmetic(NodeImport& n, std::vector<Numbers>& inputs, Numbers* out);

}  // namespace gradrack::onnx
