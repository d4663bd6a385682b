// SPDX-License-Identifier: Apache-2.0
// The precision pass: gives every real value of the differentiated graph the dtype that a policy
// names.
//
// Models and gradient rules write GR_FLOAT32 for "a real number"; this pass asks the policy for the
// storage dtype and for each node's dtype, inserts casts where they differ, and infers types anew.
// Follows autodiff, precedes the optimizer. Invariant: dtypes that a model named otherwise
// (float64, integers) stay as they are.
#pragma once

#include "core/graph/graph.hpp"
#include "gradrack/precision.h"

namespace gradrack {

/// Result of the pass: the retyped graph and the image of each old value.
struct Retyped {
  Graph graph;
  std::vector<ValueId> image;
};

/// Applies `policy` to `graph`. Images of parameters and gradients have the storage dtype. [plan]
Result<Retyped> apply_precision(const Graph& graph, const gr_precision_t& policy);

}  // namespace gradrack
