// SPDX-License-Identifier: Apache-2.0
// From a model plugin to graphs: the forward graph of each mode, and what a step makes of it.
#pragma once

#include <map>
#include <string>

#include "core/graph/graph.hpp"
#include "core/optim/groups.hpp"
#include "core/optim/step_graph.hpp"
#include "core/train/run_rules.hpp"
#include "core/train/setup.hpp"

namespace gradrack {

/// What a model's graph is wanted for.
enum class GraphUse { kTraining, kEvaluation, kExport };

/// The plugin's forward graph as built, in float32; for training without its outputs, which no step
/// reads. For an export it may have no objective. Errors carry the plugin's name. [plan]
Result<Graph> build_model(const Instance<gr_model_t>& model, GraphUse use,
                          const gr_data_info_t* data);

/// A forward graph under the precision policy, without its writes; it reads the state
/// `in_place[NAME]` in place of parameter NAME. [plan]
Result<Graph> evaluation_graph(const Graph& model, const gr_precision_t& precision,
                               const std::map<std::string, std::string>& in_place = {});

/// A microbatch's graph, differentiated and retyped.
struct TrainingGraph {
  Graph graph;
  std::vector<GradientPass> passes;
};
/// `trained`: names of the parameters that take part. [plan]
Result<TrainingGraph> training_graph(const Graph& model, const gr_precision_t& precision,
                                     const std::vector<std::string>& trained,
                                     const std::vector<ObjectiveTerm>& terms, StepShape shape);

/// For each parameter, in declared order: the objectives that give it a gradient. [plan]
Result<std::vector<ObjectiveSet>> reaching_objectives(const Graph& model);

/// Name, stage, dims and role of each parameter, in declared order.
Result<std::vector<ParameterFacts>> parameter_facts(const Graph& graph);

}  // namespace gradrack
