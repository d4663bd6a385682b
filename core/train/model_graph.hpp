// SPDX-License-Identifier: Apache-2.0
// From a model plugin to graphs: the forward graph of each mode, and the differentiated training
// graph.
#pragma once

#include "core/graph/graph.hpp"
#include "core/optim/groups.hpp"
#include "core/optim/step_graph.hpp"
#include "core/train/setup.hpp"

namespace gradrack {

/// The plugin's forward graph as built, in float32. Errors carry the plugin's name. [plan]
Result<Graph> build_model(const Instance<gr_model_t>& model, bool training,
                          const gr_data_info_t* data);

/// The evaluation graph under the precision policy; its writes are dropped.
Result<Graph> build_evaluation(const Setup& setup, const gr_data_info_t& data);

/// The training graph, differentiated and retyped, with each parameter's gradient.
struct TrainingGraph {
  Graph graph;
  std::vector<TrainedParameter> parameters;  ///< in declared order
};
Result<TrainingGraph> build_training(const Setup& setup, const gr_data_info_t& data);

/// Name, stage, dims and role of each parameter, in declared order.
Result<std::vector<ParameterFacts>> parameter_facts(const Graph& graph);

}  // namespace gradrack
