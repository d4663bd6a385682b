// SPDX-License-Identifier: Apache-2.0
// What the shape and gradient rules of several families share: broadcasting, axes, dtype checks,
// integer inputs that must be known, and the first lines of an entry.
//
// Used by core/graph/ops/*.cpp alone. Messages name the input and what was wanted; the graph puts
// the operator and its input types in front. Invariant: nothing here knows an operator by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/emitter.hpp"
#include "core/graph/op.hpp"

namespace gradrack {

/// An entry with its ports and documentation; the caller adds the rest.
OpDef define(std::string name, std::string_view inputs, std::string_view outputs, std::string doc);
/// The same in domain "gradrack".
OpDef define_own(std::string name, std::string_view inputs, std::string_view outputs,
                 std::string doc);

/// numpy's rule on symbolic dims: equal, or one of them the number 1. GR_INVALID_ARGUMENT names the
/// two dims that do not meet.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
/// GR_INVALID_ARGUMENT unless `from` broadcasts to exactly `to`.
Status check_broadcasts_to(const Shape& from, const Shape& to, std::string_view what);

/// axis in [-rank, rank) as a number in [0, rank).
Result<int64_t> normalize_axis(int64_t axis, size_t rank);
/// Each in [-rank, rank), in the order given; duplicates are refused.
Result<std::vector<int64_t>> normalize_axes(const std::vector<int64_t>& axes, size_t rank);

enum class Dtypes { kReal, kNumber, kIndex, kBool, kAny };
/// GR_INVALID_ARGUMENT unless input k has a dtype of the set; fine when it is left out.
Status want_dtype(const InferContext& c, size_t k, Dtypes set);
/// GR_INVALID_ARGUMENT unless all inputs from `first` on share one dtype of the set.
Status want_same_dtype(const InferContext& c, Dtypes set, size_t first = 0);
Status want_rank(const InferContext& c, size_t k, size_t rank);

/// Integer contents of input k, which must be a constant or made from Shape.
Result<KnownInts> known_ints(const InferContext& c, size_t k, std::string_view name);
/// The same when symbols are not allowed either (axes, steps, pads).
Result<std::vector<int64_t>> known_numbers(const InferContext& c, size_t k, std::string_view name);

/// Output 0 is all inputs broadcast, of one dtype of the set; bool when `to_bool`.
Status infer_broadcast(InferContext& c, Dtypes set, bool to_bool = false);
/// Output 0 has the type of input 0; the dtype must be of the set.
Status infer_like_first(InferContext& c, Dtypes set);

/// A tensor of zeros with x's dtype and shape.
ValueId zeros_like(Emitter& e, ValueId x);
/// Size of x along `axis` as an int64 [1] value: a constant, or taken from Shape when symbolic.
ValueId dim_of(Emitter& e, ValueId x, int64_t axis);
/// Numbers that a rule reads back from a value which infer has checked.
std::vector<int64_t> numbers_of(Emitter& e, ValueId id);

}  // namespace gradrack
