// SPDX-License-Identifier: Apache-2.0
// Cases of the model kind: both graphs, their parameters, and some steps on the reference backend.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/autodiff.hpp"
#include "core/base/text.hpp"
#include "core/optim/step_graph.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/samples.hpp"
#include "sdk/conformance/training_run.hpp"

namespace gradrack::conform {
namespace {

using ModelInstance = Instance<gr_model_t>;

Result<Graph> graph_of(Context& context, bool training) {
  GR_ASSIGN(const ModelInstance model, context.make<gr_model_t>());
  return build_model_graph(context, model.table(), training, nullptr);
}

Outcome builds(Context& context, bool training) {
  CONFORM_ASSIGN(const Graph graph, graph_of(context, training));
  if (graph.objectives().empty()) return fail("it declares no objective");
  if (parameter_names(graph).empty()) return fail("it declares no parameters");
  return pass();
}

Outcome builds_training(Context& context) { return builds(context, true); }
Outcome builds_evaluation(Context& context) { return builds(context, false); }

// "parameter w float32[4, 3]", one per parameter, buffer and objective, in declared order.
std::vector<std::string> stored(const Graph& graph) {
  std::vector<std::string> lines;
  for (const Value& value : graph.values()) {
    if (value.source != Source::kParameter && value.source != Source::kBuffer) continue;
    lines.push_back(fmt::format("{} {} {} role {}",
                                value.source == Source::kParameter ? "parameter" : "buffer",
                                value.name, to_text(value.type), value.role));
  }
  for (const Objective& each : graph.objectives()) lines.push_back("objective " + each.name);
  return lines;
}

Outcome same_parameters(Context& context) {
  CONFORM_ASSIGN(const Graph training, graph_of(context, true));
  CONFORM_ASSIGN(const Graph evaluation, graph_of(context, false));
  const std::vector<std::string> a = stored(training), b = stored(evaluation);
  for (size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
    const std::string in_training = k < a.size() ? a[k] : "nothing";
    const std::string in_evaluation = k < b.size() ? b[k] : "nothing";
    if (in_training == in_evaluation) continue;
    return fail(fmt::format("number {} is {} in training and {} in evaluation", k, in_training,
                            in_evaluation));
  }
  return pass();
}

// Inputs must be what the data brings: names, dtypes and limits of the sample it was built for.
Outcome inputs(Context& context) {
  CONFORM_ASSIGN(const Graph graph, graph_of(context, true));
  const gr_data_info_t* data = sample_data()[static_cast<size_t>(context.model_sample)].info;
  if (data == nullptr) return not_applicable("it needs no data");
  for (const Value& value : graph.values()) {
    if (value.source != Source::kInput) continue;
    const gr_data_output_t* found = nullptr;
    for (uint32_t k = 0; k < data->output_count; ++k) {
      if (value.name == data->outputs[k].name) found = &data->outputs[k];
    }
    if (found == nullptr) return fail("input '" + value.name + "' is not in the data it was given");
    if (found->dtype != value.type.dtype || found->rank != value.type.shape.size()) {
      return fail("input '" + value.name + "' has another dtype or rank than the data's");
    }
    if (value.limit > 0 && found->limit > value.limit) {
      return fail(fmt::format("input '{}' takes values below {}, the data brings some below {}",
                              value.name, value.limit, found->limit));
    }
  }
  return pass();
}

Outcome differentiates(Context& context) {
  CONFORM_ASSIGN(Graph graph, graph_of(context, true));
  std::vector<ValueId> wrt;
  std::vector<std::string> without;
  const std::vector<std::string> names = parameter_names(graph);
  for (const std::string& name : names) wrt.push_back(graph.find_source(name));
  CONFORM_ASSIGN(const Gradients gradients, differentiate(graph, wrt));
  for (size_t k = 0; k < names.size(); ++k) {
    if (gradients.of[k] == GR_NO_VALUE) without.push_back(names[k]);
  }
  if (without.size() == names.size()) return fail("no parameter has a gradient");
  Outcome outcome = pass();
  if (!without.empty()) outcome.facts["without_gradient"] = join(without);
  return outcome;
}

/// A model's training graph with a run of the kit's gradient descent.
Result<std::unique_ptr<TrainingRun>> training(Context& context) {
  GR_ASSIGN(const Graph graph, graph_of(context, true));
  return TrainingRun::train(context, graph, kit_sgd());
}

Outcome trains(Context& context) {
  CONFORM_ASSIGN(const std::unique_ptr<TrainingRun> run, training(context));
  for (int64_t k = 1; k <= 3; ++k) {
    CONFORM_ASSIGN(const double loss, run->step(k, 1e-3, static_cast<uint64_t>(k)));
    if (!std::isfinite(loss)) return fail(fmt::format("the loss of step {} is {}", k, loss));
  }
  return outcome_of(run->finite());
}

// On one batch over and over, small steps against the gradient must help: a sign or a scale that is
// wrong shows here.
Outcome learns(Context& context) {
  CONFORM_ASSIGN(const std::unique_ptr<TrainingRun> run, training(context));
  double first = 0, last = 0;
  for (int64_t k = 1; k <= 12; ++k) {
    CONFORM_ASSIGN(last, run->step(k, 3e-2, 1));
    if (k == 1) first = last;
  }
  if (last < first) return pass();
  return fail(fmt::format("12 steps of gradient descent on one batch take the loss from {} to {}",
                          first, last));
}

Outcome deterministic(Context& context) {
  CONFORM_ASSIGN(const std::unique_ptr<TrainingRun> first, training(context));
  CONFORM_ASSIGN(const std::unique_ptr<TrainingRun> second, training(context));
  for (int64_t k = 1; k <= 3; ++k) {
    CONFORM_ASSIGN(const double a, first->step(k, 1e-2, static_cast<uint64_t>(k)));
    CONFORM_ASSIGN(const double b, second->step(k, 1e-2, static_cast<uint64_t>(k)));
    if (a != b) return fail(fmt::format("step {} gives {} and {}", k, a, b));
  }
  CONFORM_ASSIGN(const Snapshot a, first->snapshot());
  CONFORM_ASSIGN(const Snapshot b, second->snapshot());
  const std::string other = first_difference(a, b);
  return other.empty() ? pass() : fail("3 equal steps end apart: " + other);
}

Outcome evaluates(Context& context) {
  CONFORM_ASSIGN(const Graph graph, graph_of(context, false));
  CONFORM_ASSIGN(const std::unique_ptr<TrainingRun> run, TrainingRun::evaluate(context, graph));
  CONFORM_ASSIGN(const double first, run->step(1, 0, 1));
  // Another step number is another state of the random numbers: evaluation draws none.
  CONFORM_ASSIGN(const double second, run->step(2, 0, 1));
  if (!std::isfinite(first)) return fail(fmt::format("the loss is {}", first));
  return first == second ? pass()
                         : fail(fmt::format("the same batch evaluates to {} and {}: dropout is off "
                                            "in evaluation",
                                            first, second));
}

}  // namespace

void add_model_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, int level, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, level, title, run});
  };
  add("L3.training", 3, "it builds a training graph with one objective", builds_training);
  add("L3.evaluation", 3, "it builds an evaluation graph", builds_evaluation);
  add("L3.same_parameters", 3, "both declare the same parameters and buffers", same_parameters);
  add("L3.inputs", 3, "its inputs are those of the data it is given", inputs);
  add("L3.differentiates", 3, "the training graph can be differentiated", differentiates);
  add("L5.trains", 5, "three steps have finite losses", trains);
  add("L5.learns", 5, "gradient descent on one batch lowers the loss", learns);
  add("L5.deterministic", 5, "equal steps, equal bits", deterministic);
  add("L5.evaluates", 5, "evaluation is finite and draws no random numbers", evaluates);
}

}  // namespace gradrack::conform
