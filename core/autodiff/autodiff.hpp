// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a graph: appends the backward nodes.
//
// Follows model building, precedes precision. Invariants: the gradient to an activation (dX) and to
// a weight (dW) are separate nodes, marked GR_KIND_INPUT_GRADIENT and GR_KIND_WEIGHT_GRADIENT; a
// value that no objective reads gets no gradient (absent, not zero); contributions are added in one
// fixed order, so that bits do not depend on the schedule.
#pragma once

#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack {

struct Gradients {
  /// of[k]: gradient of wrt[k], same type; GR_NO_VALUE: absent.
  std::vector<ValueId> of;
};

/// Appends to `graph` the gradients of the sum of all objectives' sums with respect to `wrt`
/// (sources of real dtype). Composite operators without a gradient rule on the way are decomposed
/// first, so ids of node values (not their order or meaning) change: find objectives and outputs
/// again by name. `wrt` are ids before the call; the answer's ids are those after it.
/// GR_UNSUPPORTED: an operator on the way has no gradient; the message names it and the source.
/// [plan]
Result<Gradients> differentiate(Graph& graph, const std::vector<ValueId>& wrt);

}  // namespace gradrack
