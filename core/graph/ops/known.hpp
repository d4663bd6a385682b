// SPDX-License-Identifier: Apache-2.0
// Integers that stay known through elementwise work while a graph is built, so that shapes can be
// computed in the graph: arithmetic, comparisons and choices of known contents.
//
// Used by the shape rules of core/graph/ops. Invariant: an answer holds for every value of the
// symbols; where they leave it open, nothing is known.
#pragma once

#include <optional>

#include "core/graph/op.hpp"

namespace gradrack {

/// One element from two; nothing where symbols leave it open. Tests answer 0 or 1.
using DimRule = std::optional<Dim> (*)(const Dim& a, const Dim& b);

/// Output 0 of known inputs that broadcast, folded from the left by `rule`. No rule: not known.
void keep_known(InferContext& c, DimRule rule);
/// Output 0 of Where: known when the condition and both choices are.
void keep_known_where(InferContext& c);

std::optional<Dim> equal_dims(const Dim& a, const Dim& b);
std::optional<Dim> less_dims(const Dim& a, const Dim& b);
std::optional<Dim> larger_dim(const Dim& a, const Dim& b);
std::optional<Dim> smaller_dim(const Dim& a, const Dim& b);
/// 1 for 0 and 0 for 1.
std::optional<Dim> negated_test(const std::optional<Dim>& test);

}  // namespace gradrack
