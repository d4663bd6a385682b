// SPDX-License-Identifier: Apache-2.0
// The step graph: forward, backward, normalisation, clipping and update as one graph.
//
// Takes the differentiated and retyped model graph and the optimizers of the parameter groups. One
// optimizer step is K microbatches: the first K-1 run a graph that only accumulates, the last one
// runs the graph that also updates; with K = 1 there is one graph. A loss scale is taken out once,
// after accumulation and before clipping, in double, with the factor that normalises. Invariants:
// the loss and all gradients are divided once, by the numbers of targets of the whole step
// (objectives.hpp); a parameter whose gradient is absent has no part in the norm and is not
// updated; nothing but Graph::writes changes parameters, state or buffers, and each write is gated
// by `step.ok` (finite norm, at least one target).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/optim/objectives.hpp"
#include "gradrack/optimizer.h"
#include "gradrack/update_rounding.h"

namespace gradrack {

/// One group's optimizer and its members, by parameter name.
struct GroupUpdate {
  const gr_optimizer_t* optimizer = nullptr;
  std::string plugin;     ///< for messages
  std::string lr_scalar;  ///< name of the float64 scalar source, "lr.0"
  std::vector<std::string> parameters;
  std::vector<const gr_optimizer_t*> wrappers = {};  ///< of gr.wrapper/1, first applied first
  double ema_decay = 0;  ///< above 0: "NAME.ema" follows the parameter, ema = d ema + (1 - d) p
  /// Above 0: its parameters are clipped by the norm of their own gradients, and have no part in
  /// the norm by which the others are. Infinity: never clipped.
  double max_grad_norm = 0;
};

/// Source that the host sets each step: float64 number of this update, from 1.
inline constexpr const char* kStepNumber = "step.number";

struct TrainedParameter {
  std::string name;
  /// Name of the float64 scalar source that counts this parameter's own updates, from 1. Parameters
  /// that are always updated together share one.
  std::string count_scalar = kStepNumber;
};

/// Whether gradients of any group are clipped, `run_norm` being that of groups without one of their
/// own.
inline bool clips(const std::vector<GroupUpdate>& groups, double run_norm) {
  return std::any_of(groups.begin(), groups.end(), [run_norm](const GroupUpdate& group) {
    return std::isfinite(group.max_grad_norm > 0 ? group.max_grad_norm : run_norm);
  });
}

struct StepGraphRequest {
  const Graph* graph = nullptr;  ///< differentiated and retyped
  std::vector<TrainedParameter> parameters;
  std::vector<ObjectiveTerm> objectives;
  std::vector<GradientPass> passes;  ///< of add_backward, with ids of `graph`
  std::vector<GroupUpdate> groups;
  double max_grad_norm = 0;  ///< of groups without one of their own; infinity: no clipping
  StepShape shape;
  const gr_update_rounding_t* rounding = nullptr;  ///< of the precision, if it says so
  bool loss_scaled = false;    ///< `passes` were made so: kLossScale is taken out again here
  bool can_take_back = false;  ///< whoever runs it takes a step back whose kStepOk is false

  /// Updates wait for the loss alone, not for the norm of all gradients: no gradient is scaled by
  /// it, and where it is not finite the step is taken back. The same bits either way.
  bool optimistic() const { return can_take_back && !clips(groups, max_grad_norm); }
};

/// Names of the scalars that a step graph with `update` gives: float64 but for ok.
inline constexpr const char* kStepLoss = "step.loss";           ///< weighted sum of objectives
inline constexpr const char* kStepGradNorm = "step.grad_norm";  ///< before clipping
inline constexpr const char* kStepTargets = "step.targets";     ///< of all objectives
inline constexpr const char* kStepOk = "step.ok";               ///< bool: the update was made
/// "objective.NAME": mean over an objective's targets, without its weight; for objectives that have
/// a weight scalar.
std::string objective_loss_name(const std::string& objective);

/// Makes the graph for one shape of step. Accumulator sources begin with "acc.", pending buffers
/// with "pending."; optimizer state is named "NAME.STATE". [plan]
Result<Graph> make_step_graph(const StepGraphRequest& request);

/// Names of a graph's parameters, in declared order.
std::vector<std::string> parameter_names(const Graph& graph);

}  // namespace gradrack
