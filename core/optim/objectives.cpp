// SPDX-License-Identifier: Apache-2.0
// Objectives in a step: see objectives.hpp.
#include "core/optim/objectives.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

Status check_terms(const Graph& graph, const std::vector<ObjectiveTerm>& terms) {
  const std::vector<std::string> names = objective_names(graph);
  for (const ObjectiveTerm& term : terms) {
    if (std::find(names.begin(), names.end(), term.name) != names.end()) continue;
    return invalid_argument("the model has no objective '" + term.name + "'" +
                            did_you_mean(term.name, names) + "; it has: " + join(names));
  }
  return {};
}

// A scalar source, or GR_NO_VALUE with the error kept.
ValueId scalar_or_fail(Emitter& e, const std::string& name) {
  const Result<ValueId> source = scalar_source(e.graph(), name);
  if (!source.ok()) e.fail(source.status());
  return source.ok() ? *source : static_cast<ValueId>(GR_NO_VALUE);
}

// weight / max(1, targets), times the loss scale, in the dtype of the objective's sum.
ValueId normalised_seed(Emitter& e, const Objective& objective, const ObjectiveTerm& term,
                        bool scaled) {
  const ValueId targets = e.cast(objective.count, GR_FLOAT64);
  const ValueId divisor = e.op("Max", {targets, e.constant(GR_FLOAT64, 1.0)});
  const ValueId weight = term.weight_scalar.empty() ? e.constant(GR_FLOAT64, 1.0)
                                                    : scalar_or_fail(e, term.weight_scalar);
  ValueId share = e.div(weight, divisor);
  if (scaled) share = e.mul(share, scalar_or_fail(e, kLossScale));
  return e.cast(share, e.type(objective.sum).dtype);
}

// A pass from one objective, as its sum is.
Seed plain_seed(const std::string& name, bool scaled) {
  return [name, scaled](Emitter& e, const Objective& o) {
    if (o.name != name) return static_cast<ValueId>(GR_NO_VALUE);
    if (!scaled) return e.like(o.sum, 1.0);
    const ValueId power = power_of_targets(e, e.cast(o.count, GR_FLOAT64));
    return e.cast(e.div(scalar_or_fail(e, kLossScale), power), e.type(o.sum).dtype);
  };
}

// One pass from all active objectives, each with its own seed.
Seed joint_seed(const std::vector<ObjectiveTerm>& terms, bool scaled) {
  return [terms, scaled](Emitter& e, const Objective& o) {
    const auto term = std::find_if(terms.begin(), terms.end(), [&](const ObjectiveTerm& t) {
      return t.active && t.name == o.name;
    });
    if (term == terms.end()) return static_cast<ValueId>(GR_NO_VALUE);
    return normalised_seed(e, o, *term, scaled);
  };
}

}  // namespace

std::vector<std::string> objective_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Objective& objective : graph.objectives()) names.push_back(objective.name);
  return names;
}

std::string weight_scalar_name(const std::string& objective) {
  return "objective." + objective + ".weight";
}

ValueId power_of_targets(Emitter& e, ValueId targets) {
  const ValueId some = e.op("Max", {targets, e.constant(GR_FLOAT64, 1.0)});
  // log2 may be a hair off at a power of two: any power near the number serves.
  const ValueId exponent = e.op("Floor", {e.mul(e.op("Log", {some}), 1.0 / std::log(2.0))});
  return e.op("Pow", {e.constant(GR_FLOAT64, 2.0), exponent});
}

Result<ValueId> scalar_source(Graph& graph, const std::string& name) {
  const ValueId known = graph.find_source(name);
  if (known != GR_NO_VALUE) return known;
  Value value;
  value.source = Source::kScalar;
  value.name = name;
  value.type = {GR_FLOAT64, {}};
  return graph.add_source(std::move(value));
}

std::vector<ObjectiveTerm> all_objectives(const Graph& graph) {
  std::vector<ObjectiveTerm> terms;
  for (const Objective& objective : graph.objectives()) terms.push_back({objective.name});
  return terms;
}

Result<std::vector<GradientPass>> add_backward(Graph& graph,
                                               const std::vector<std::string>& trained,
                                               const std::vector<ObjectiveTerm>& terms,
                                               StepShape shape, bool scaled) {
  GR_TRY(check_terms(graph, terms));
  graph.keep_objectives([&](const Objective& o) {
    return std::any_of(terms.begin(), terms.end(),
                       [&](const ObjectiveTerm& term) { return term.name == o.name; });
  });
  std::vector<GradientPass> passes;
  std::vector<Seed> seeds;
  if (shape.alone() && terms.size() > 1) {
    passes.push_back({{}, true, {}});
    for (size_t k = 0; k < terms.size(); ++k) passes[0].objectives.push_back(k);
    seeds.push_back(joint_seed(terms, scaled));
  } else {
    for (size_t k = 0; k < terms.size(); ++k) {
      passes.push_back({{k}, false, {}});
      seeds.push_back(plain_seed(terms[k].name, scaled));
    }
  }
  std::vector<ValueId> wrt;
  for (const std::string& name : trained) wrt.push_back(graph.find_source(name));
  GR_ASSIGN(const std::vector<Gradients> gradients, differentiate(graph, wrt, seeds));
  for (size_t k = 0; k < passes.size(); ++k) passes[k].of = gradients[k].of;
  return passes;
}

}  // namespace gradrack
