// SPDX-License-Identifier: Apache-2.0
// The step graph: forward, backward, normalisation, clipping and update as one graph.
//
// Takes the differentiated and retyped model graph and the optimizers of the parameter groups. One
// optimizer step is K microbatches: the first K-1 run a graph that only accumulates, the last one
// runs the graph that also updates; with K = 1 there is one graph. Invariants: the loss and all
// gradients are divided in one place, by the number of targets of the whole step; nothing but
// Graph::writes changes parameters, state or buffers, and each write is gated by `step.ok` (finite
// norm, at least one target).
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "gradrack/optimizer.h"

namespace gradrack {

/// Which of a step's graphs to make.
struct StepShape {
  bool accumulate_in = false;  ///< earlier microbatches of this step are in the accumulators
  bool update = true;          ///< this is the last microbatch: clip and update
  bool operator<(const StepShape& o) const {
    return accumulate_in != o.accumulate_in ? accumulate_in < o.accumulate_in : update < o.update;
  }
};

/// One group's optimizer and its members, by parameter name.
struct GroupUpdate {
  const gr_optimizer_t* optimizer = nullptr;
  std::string plugin;     ///< for messages
  std::string lr_scalar;  ///< name of the float64 scalar source, "lr.0"
  std::vector<std::string> parameters;
};

struct TrainedParameter {
  std::string name;
  ValueId gradient = GR_NO_VALUE;  ///< in `graph`; GR_NO_VALUE: absent, so it is skipped
};

struct StepGraphRequest {
  const Graph* graph = nullptr;  ///< differentiated and retyped
  std::vector<TrainedParameter> parameters;
  std::vector<GroupUpdate> groups;
  double max_grad_norm = 0;  ///< infinity: no clipping
  StepShape shape;
};

/// Names of the scalars that a step graph with `update` gives: float64 but for ok.
inline constexpr const char* kStepLoss = "step.loss";           ///< mean over the step's targets
inline constexpr const char* kStepGradNorm = "step.grad_norm";  ///< before clipping
inline constexpr const char* kStepTargets = "step.targets";
inline constexpr const char* kStepOk = "step.ok";  ///< bool: the update was made
/// Sources that the host sets each step: float64 number of this update from 1, and the rates.
inline constexpr const char* kStepNumber = "step.number";

/// Makes the graph for one shape of step. Accumulator sources are named "acc.NAME", optimizer state
/// "NAME.STATE", pending buffers "pending.NAME". [plan]
Result<Graph> make_step_graph(const StepGraphRequest& request);

/// Names of a graph's parameters, in declared order.
std::vector<std::string> parameter_names(const Graph& graph);

}  // namespace gradrack
