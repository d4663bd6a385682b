// SPDX-License-Identifier: Apache-2.0
// Model graphs: see model_graph.hpp.
#include "core/train/model_graph.hpp"

#include "core/autodiff/autodiff.hpp"
#include "core/graph/builder_api.hpp"
#include "core/precision/retype.hpp"

namespace gradrack {

Result<Graph> build_model(const Instance<gr_model_t>& model, bool training,
                          const gr_data_info_t* data) {
  Graph graph;
  BuilderApi api(graph);
  const gr_builder_t builder = api.builder();
  gr_model_context_t context = {};
  context.struct_size = sizeof context;
  context.training = training ? 1 : 0;
  context.data = data;
  gr_error_t err = {};
  const int32_t code = model->build(model.table().self, &builder, &context, &err);
  GR_TRY(status_from(code, err).with_context("model '" + model.name() + "'"));
  if (graph.objectives().empty()) {
    return invalid_argument("model '" + model.name() + "' declares no objective")
        .in_area(Area::kPlugin);
  }
  return graph;
}

Result<Graph> build_evaluation(const Setup& setup, const gr_data_info_t& data) {
  GR_ASSIGN(Graph graph, build_model(setup.model->instance, false, &data));
  graph.drop_writes();
  GR_ASSIGN(Retyped retyped, apply_precision(graph, setup.precision->instance.table()));
  return std::move(retyped.graph);
}

Result<TrainingGraph> build_training(const Setup& setup, const gr_data_info_t& data) {
  GR_ASSIGN(Graph graph, build_model(setup.model->instance, true, &data));
  const std::vector<std::string> names = parameter_names(graph);
  std::vector<ValueId> wrt;
  for (const std::string& name : names) wrt.push_back(graph.find_source(name));
  GR_ASSIGN(const Gradients gradients, differentiate(graph, wrt));
  GR_ASSIGN(Retyped retyped, apply_precision(graph, setup.precision->instance.table()));
  TrainingGraph out{std::move(retyped.graph), {}};
  for (size_t k = 0; k < names.size(); ++k) {
    const ValueId gradient = gradients.of[k];
    out.parameters.push_back(
        {names[k], gradient == GR_NO_VALUE ? gradient : retyped.image[size_t(gradient)]});
  }
  return out;
}

Result<std::vector<ParameterFacts>> parameter_facts(const Graph& graph) {
  std::vector<ParameterFacts> facts;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kParameter) continue;
    GR_ASSIGN(const std::vector<int64_t> dims, bind(value.type.shape, {}));
    facts.push_back({value.name, graph.stage_name(value.stage), dims, value.role});
  }
  return facts;
}

}  // namespace gradrack
