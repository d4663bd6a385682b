// SPDX-License-Identifier: Apache-2.0
// fold_weights: what a model computes from its weights alone, computed once for an export.
#pragma once

#include "core/exec/run_once.hpp"
#include "core/train/session.hpp"

namespace gradrack {

struct FoldedWeights {
  Graph graph;
  HostTensors weights;  ///< of `graph`
};

/// A node whose inputs are weights and constants alone, and whose result has the dims of a weight
/// that nothing else reads, becomes that weight: an adapter is added to the matrix it adapts, which
/// keeps its name. Other nodes stay. Runs on the backend `reference`. [main]
Result<FoldedWeights> fold_weights(Session& session, const Graph& graph,
                                   const HostTensors& weights);

}  // namespace gradrack
