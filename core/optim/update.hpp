// SPDX-License-Identifier: Apache-2.0
// The optimizers' part of a step graph: asks each group's plugin for the update of each parameter
// and commits the results. Called by step_graph.cpp alone.
#pragma once

#include <vector>

#include "core/optim/step_graph.hpp"

namespace gradrack {

/// Appends updates of all parameters that have a gradient. `gradients[k]` belongs to
/// request.parameters[k]; `factors[g]` (float64 scalar) normalises and clips those of
/// request.groups[g], GR_NO_VALUE: they are ready; `ok` (bool scalar) gates every write. [plan]
Status add_optimizer_updates(const StepGraphRequest& request, Graph& graph,
                             const std::vector<ValueId>& gradients,
                             const std::vector<ValueId>& factors, ValueId ok);

}  // namespace gradrack
