// SPDX-License-Identifier: Apache-2.0
// Gated units: backward makes the activation again instead of keeping it.
//
// Of m = f(g) u (SwiGLU, GeGLU) backward reads f(g) once, for the gradient of u, and g right after,
// for that of f. So f(g) is made anew from the g that is kept anyway: one tensor less for each
// layer, and one pass less over memory where a backend makes all of it in one kernel. Runs on the
// simplified graph, before planning. Invariant: operator, input and attributes are the same, so no
// bit changes.
#pragma once

#include "core/graph/graph.hpp"

namespace gradrack {

/// `graph` with a second node for each such activation, right before the first that reads it in
/// backward. [plan]
Result<Graph> remake_gates(const Graph& graph);

}  // namespace gradrack
