// SPDX-License-Identifier: Apache-2.0
// Model graphs: see model_graph.hpp.
#include "core/train/model_graph.hpp"

#include "core/graph/builder_api.hpp"
#include "core/precision/extensions.hpp"
#include "core/precision/retype.hpp"

namespace gradrack {

Result<Graph> build_model(const Instance<gr_model_t>& model, GraphUse use,
                          const gr_data_info_t* data) {
  const bool training = use == GraphUse::kTraining;
  Graph graph;
  BuilderApi api(graph, !training);  // no step reads predictions
  const gr_builder_t builder = api.builder();
  gr_model_context_t context = {};
  context.struct_size = sizeof context;
  context.training = training ? 1 : 0;
  context.data = data;
  context.exporting = use == GraphUse::kExport ? 1 : 0;
  gr_error_t err = {};
  const int32_t code = model->build(model.table().self, &builder, &context, &err);
  GR_TRY(
      status_from(code, err).with_context("model '" + model.name() + "'").in_area(Area::kPlugin));
  if (graph.objectives().empty() && use != GraphUse::kExport) {
    return invalid_argument("model '" + model.name() + "' declares no objective")
        .in_area(Area::kPlugin);
  }
  return graph;
}

Result<Graph> evaluation_graph(const Graph& model, const gr_precision_t& precision,
                               const std::map<std::string, std::string>& in_place) {
  Graph graph = model;
  graph.drop_writes();
  GR_ASSIGN(Retyped retyped, apply_precision(graph, precision));
  for (const auto& [name, state] : in_place) {
    const ValueId id = retyped.graph.find_source(name);
    if (id == GR_NO_VALUE) continue;  // evaluation has no use for it
    GR_TRY(retyped.graph.rename_source(id, Source::kState, state));
  }
  return std::move(retyped.graph);
}

Result<TrainingGraph> training_graph(const Graph& model, const gr_precision_t& precision,
                                     const std::vector<std::string>& trained,
                                     const std::vector<ObjectiveTerm>& terms, StepShape shape) {
  const bool scaled = loss_scale_of(precision) != nullptr;
  Graph graph = model;
  TrainingGraph out;
  GR_ASSIGN(out.passes, add_backward(graph, trained, terms, shape, scaled));
  std::vector<ValueId> gradients;
  for (const GradientPass& pass : out.passes) {
    gradients.insert(gradients.end(), pass.of.begin(), pass.of.end());
  }
  GR_ASSIGN(Retyped retyped, apply_precision(graph, precision, gradients));
  for (GradientPass& pass : out.passes) {
    for (ValueId& gradient : pass.of) {
      if (gradient != GR_NO_VALUE) gradient = retyped.image[static_cast<size_t>(gradient)];
    }
  }
  out.graph = std::move(retyped.graph);
  return out;
}

Result<std::vector<ObjectiveSet>> reaching_objectives(const Graph& model) {
  Graph graph = model;
  const std::vector<std::string> names = parameter_names(graph);
  // Not the shape of a whole step, so that each objective has a pass of its own.
  GR_ASSIGN(const std::vector<GradientPass> passes,
            add_backward(graph, names, all_objectives(graph), {false, false}));
  std::vector<ObjectiveSet> reach(names.size(), 0);
  for (size_t o = 0; o < passes.size(); ++o) {
    for (size_t k = 0; k < names.size(); ++k) {
      if (passes[o].of[k] != GR_NO_VALUE) reach[k] |= ObjectiveSet{1} << o;
    }
  }
  return reach;
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
