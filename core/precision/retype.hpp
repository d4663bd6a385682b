// SPDX-License-Identifier: Apache-2.0
// The precision pass: gives every real value of the differentiated graph the dtype that a policy
// names.
//
// Models and gradient rules write GR_FLOAT32 for "a real number"; this pass asks the policy for the
// storage dtype and for each node's dtype, inserts casts where they differ, and infers types anew.
// Follows autodiff, precedes the optimizer. Invariants: dtypes that a model named otherwise
// (float64, integers) stay as they are; what leaves the graph (objectives, outputs, writes,
// gradients) has the storage dtype, whatever computed it. Where that has 16 bits, parameters and
// gradients alone have it; the others have float32.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.hpp"
#include "gradrack/precision.h"

namespace gradrack {

/// Result of the pass: the retyped graph and the image of each old value.
struct Retyped {
  Graph graph;
  std::vector<ValueId> image;
};

/// Applies `policy` to `graph`. `gradients`: ids that leave the graph besides its objectives,
/// outputs and writes. [plan]
Result<Retyped> apply_precision(const Graph& graph, const gr_precision_t& policy,
                                std::span<const ValueId> gradients = {});

}  // namespace gradrack
