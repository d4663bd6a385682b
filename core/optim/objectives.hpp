// SPDX-License-Identifier: Apache-2.0
// Objectives in a step: their weights, their backward passes, their share of each gradient.
//
// A step's loss is the sum over its objectives of weight * (sum over targets) / (their number),
// with sums and numbers over all microbatches of the step in which the objective was active. Where
// one microbatch is the whole step, the numbers are known before the backward pass, which then
// starts from weight / number and runs once. Where they are not, each objective has a pass and
// accumulators of its own, and the division comes at the end. A loss scale multiplies what a pass
// starts with. Invariant: an objective that is not active starts no pass, so gradients that it
// alone would give are absent, not zero.
#pragma once

#include <string>
#include <vector>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

/// Which of a step's graphs to make.
struct StepShape {
  bool accumulate_in = false;  ///< earlier microbatches of this step are in the accumulators
  bool update = true;          ///< this is the last microbatch: clip and update
  bool operator<(const StepShape& o) const {
    return accumulate_in != o.accumulate_in ? accumulate_in < o.accumulate_in : update < o.update;
  }
  bool operator==(const StepShape&) const = default;
  /// The step has no other microbatch.
  bool alone() const { return update && !accumulate_in; }
};

/// One objective's part in a step.
struct ObjectiveTerm {
  std::string name;
  std::string weight_scalar = {};  ///< name of its float64 scalar source; empty: a weight of 1
  bool active = true;              ///< in this microbatch
  bool earlier = false;            ///< in earlier ones of this step: accumulators hold its totals
};

/// Gradients of one backward pass.
struct GradientPass {
  std::vector<size_t> objectives;  ///< indices of terms
  bool normalised = false;         ///< each went in with weight / targets; else one, with 1
  std::vector<ValueId> of;         ///< by trained parameter; GR_NO_VALUE: absent
};

/// "objective.NAME.weight": the source that holds an objective's weight.
std::string weight_scalar_name(const std::string& objective);

/// Source that the host sets each step where losses are scaled: float64.
inline constexpr const char* kLossScale = "loss.scale";

/// The power of two by which a pass with one objective is scaled down, over its targets in this
/// microbatch: 2^floor(log2 targets). So a loss scale means nearly the same as where a loss is a
/// mean, and dividing and multiplying by it is exact. `targets`: float64 scalar.
ValueId power_of_targets(Emitter& e, ValueId targets);

/// The scalar float64 source of that name, made if new.
Result<ValueId> scalar_source(Graph& graph, const std::string& name);

/// Names of a graph's objectives, in declared order.
std::vector<std::string> objective_names(const Graph& graph);

/// Every objective of `graph`, active, with a weight of 1.
std::vector<ObjectiveTerm> all_objectives(const Graph& graph);

/// Takes objectives that are in no term out of `graph`, then appends the backward passes that a
/// microbatch of `shape` needs, with respect to the parameters `trained`. With `scaled` they start
/// kLossScale times higher, and one that is not normalised power_of_targets() lower. Ids of nodes'
/// values change (see differentiate). GR_INVALID_ARGUMENT: a term names no objective of the graph.
/// [plan]
Result<std::vector<GradientPass>> add_backward(Graph& graph,
                                               const std::vector<std::string>& trained,
                                               const std::vector<ObjectiveTerm>& terms,
                                               StepShape shape, bool scaled = false);

}  // namespace gradrack
