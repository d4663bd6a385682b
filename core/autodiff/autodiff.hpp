// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a graph: appends the backward nodes.
//
// Follows model building, precedes precision. Invariants: the gradient to an activation (dX) and to
// a weight (dW) are separate nodes, marked GR_KIND_INPUT_GRADIENT and GR_KIND_WEIGHT_GRADIENT; a
// value that no objective reads gets no gradient (absent, not zero); contributions are added in one
// fixed order, so that bits do not depend on the schedule.
#pragma once

#include <functional>
#include <vector>

#include "core/graph/emitter.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

struct Gradients {
  /// of[k]: gradient of wrt[k], same type; GR_NO_VALUE: absent.
  std::vector<ValueId> of;
};

/// What a backward pass starts with at an objective's sum: a scalar of its type (1 for the plain
/// gradient), or GR_NO_VALUE where the objective has no part in the pass. May add nodes and
/// sources.
using Seed = std::function<ValueId(Emitter& e, const Objective& objective)>;

/// Appends to `graph` the gradients of the sum of all objectives' sums with respect to `wrt`
/// (sources of real dtype). Composite operators without a gradient rule on the way are decomposed
/// first, so ids of node values (not their order or meaning) change: find objectives and outputs
/// again by name. `wrt` are ids before the call; the answer's ids are those after it.
/// GR_UNSUPPORTED: an operator on the way has no gradient; the message names it and the source.
/// [plan]
Result<Gradients> differentiate(Graph& graph, const std::vector<ValueId>& wrt);

/// The same with one backward pass for each of `seeds`, one after the other in the program: answers
/// one set of gradients a pass. A pass goes back from its own objectives alone, so what none of
/// them reads is absent from it.
Result<std::vector<Gradients>> differentiate(Graph& graph, const std::vector<ValueId>& wrt,
                                             const std::vector<Seed>& seeds);

}  // namespace gradrack
