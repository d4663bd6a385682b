// SPDX-License-Identifier: Apache-2.0
// Cases of the optimizer kind: legal update graphs, and what they do over some steps on reference.
#include <fmt/format.h>

#include <set>

#include "core/base/text.hpp"
#include "core/graph/emitter.hpp"
#include "gradrack/direction.h"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/samples.hpp"
#include "sdk/conformance/training_run.hpp"

namespace gradrack::conform {
namespace {

using OptimizerInstance = Instance<gr_optimizer_t>;
constexpr double kRate = 1e-2;

Outcome declares(Context& context) {
  CONFORM_ASSIGN(const OptimizerInstance optimizer, context.make<gr_optimizer_t>());
  for (const SampleParameter& parameter : sample_parameters()) {
    const auto first = build_update_graph(optimizer.table(), parameter, nullptr);
    const auto second = build_update_graph(optimizer.table(), parameter, nullptr);
    if (first.status().code() == GR_UNSUPPORTED) continue;
    CONFORM_TRY(first.status());
    CONFORM_TRY(second.status());
    if (dump(*first) == dump(*second)) continue;
    return fail("for '" + parameter.name +
                "' the second graph differs from the first: what varies "
                "by step must be a value of the graph, such as `step`");
  }
  return pass();
}

// One parameter of one rank, by its place among the samples.
Outcome update_of(Context& context, size_t place) {
  const SampleParameter parameter = sample_parameters()[place];
  CONFORM_ASSIGN(const OptimizerInstance optimizer, context.make<gr_optimizer_t>());
  const auto graph = build_update_graph(optimizer.table(), parameter, nullptr);
  if (graph.status().code() == GR_UNSUPPORTED) return not_applicable(graph.status().message());
  CONFORM_TRY(graph.status());
  return pass();
}

/// sum of p * G(p) over the parameters that the optimizer supports, G an input each, so that the
/// gradient of p is G; one more, "idle", that the objective does not read.
Result<Graph> linear_graph(const gr_optimizer_t& optimizer, bool bowl) {
  Graph graph;
  Emitter e(graph);
  ValueId total = GR_NO_VALUE;
  std::vector<SampleParameter> parameters = sample_parameters();
  parameters.push_back({"idle", GR_FLOAT32, {3, 2}, GR_ROLE_WEIGHT});
  for (const SampleParameter& parameter : parameters) {
    const auto update = build_update_graph(optimizer, parameter, nullptr);
    if (update.status().code() == GR_UNSUPPORTED) continue;
    GR_TRY(update.status());
    Value value;
    value.source = Source::kParameter;
    value.name = parameter.name;
    value.type = {parameter.dtype, Shape(parameter.dims.begin(), parameter.dims.end())};
    value.role = parameter.role;
    value.init = {GR_INIT_NORMAL, 0, 0.0, 1.0};
    GR_ASSIGN(const ValueId p, graph.add_source(value));
    if (parameter.name == "idle") continue;
    value.source = Source::kInput;
    value.name = "G." + parameter.name;
    GR_ASSIGN(const ValueId g, graph.add_source(value));
    std::vector<int64_t> axes;
    for (size_t k = 0; k < parameter.dims.size(); ++k) axes.push_back(static_cast<int64_t>(k));
    // A scalar stays as it is: no axes to reduce.
    const ValueId product = e.mul(p, bowl ? p : g);
    const ValueId sum = axes.empty() ? product : e.reduce_sum(product, axes, false);
    const ValueId wide = e.cast(sum, GR_FLOAT64);
    total = total == GR_NO_VALUE ? wide : e.add(total, wide);
    GR_TRY(e.status());
  }
  if (total == GR_NO_VALUE) return unsupported("it takes none of the kit's parameters");
  GR_TRY(graph.add_objective("loss", total, e.constant(GR_FLOAT64, 1.0)));
  GR_TRY(e.status());
  return graph;
}

/// An instance with a run over the linear graph. Members in the order of their making.
struct OptimizerRun {
  OptimizerInstance optimizer;
  std::unique_ptr<TrainingRun> run;
};

Result<OptimizerRun> make_run(Context& context, const std::vector<std::string>& sets = {},
                              bool bowl = false) {
  GR_ASSIGN(OptimizerInstance optimizer, context.make<gr_optimizer_t>(sets));
  GR_ASSIGN(const Graph graph, linear_graph(optimizer.table(), bowl));
  GR_ASSIGN(std::unique_ptr<TrainingRun> run,
            TrainingRun::train(context, graph, optimizer.table()));
  return OptimizerRun{std::move(optimizer), std::move(run)};
}

/// Of gr.wrapper/1: it trains nothing by itself.
Result<bool> is_wrapper(Context& context) {
  GR_ASSIGN(const OptimizerInstance optimizer, context.make<gr_optimizer_t>());
  const gr_optimizer_t& table = optimizer.table();
  return table.get_extension != nullptr &&
         table.get_extension(table.self, GR_EXT_WRAPPER) != nullptr;
}

Status steps(TrainingRun& run, int64_t from, int64_t to) {
  for (int64_t k = from; k <= to; ++k) {
    GR_TRY(run.step(k, kRate, static_cast<uint64_t>(k)).status());
  }
  return {};
}

Outcome finite(Context& context) {
  CONFORM_ASSIGN(OptimizerRun made, make_run(context));
  CONFORM_TRY(steps(*made.run, 1, 30));
  return outcome_of(made.run->finite());
}

Outcome moves(Context& context) {
  CONFORM_ASSIGN(OptimizerRun made, make_run(context));
  CONFORM_ASSIGN(Snapshot before, made.run->snapshot());
  CONFORM_TRY(steps(*made.run, 1, 3));
  CONFORM_ASSIGN(Snapshot after, made.run->snapshot());
  for (const SampleParameter& parameter : sample_parameters()) {
    const auto at = before.find(parameter.name);
    if (at == before.end() || at->second != after[parameter.name]) continue;
    return fail("'" + parameter.name + "' has a gradient and stays as it was for 3 steps");
  }
  return pass();
}

Outcome descends(Context& context) {
  CONFORM_ASSIGN(OptimizerRun made, make_run(context, {}, true));
  CONFORM_ASSIGN(const double first, made.run->step(1, 1e-3, 1));
  double last = first;
  for (int64_t k = 2; k <= 50; ++k) {
    CONFORM_ASSIGN(last, made.run->step(k, 1e-3, 1));
  }
  if (last < first) return pass();
  return fail(
      fmt::format("50 steps at lr 1e-3 take the sum of squares from {} to {}", first, last));
}

Outcome deterministic(Context& context) {
  CONFORM_ASSIGN(OptimizerRun first, make_run(context));
  CONFORM_ASSIGN(OptimizerRun second, make_run(context));
  CONFORM_TRY(steps(*first.run, 1, 10));
  CONFORM_TRY(steps(*second.run, 1, 10));
  CONFORM_ASSIGN(const Snapshot a, first.run->snapshot());
  CONFORM_ASSIGN(const Snapshot b, second.run->snapshot());
  const std::string other = first_difference(a, b);
  return other.empty() ? pass() : fail("10 equal steps of two instances end apart: " + other);
}

Outcome absent_gradient(Context& context) {
  CONFORM_ASSIGN(OptimizerRun made, make_run(context));
  CONFORM_ASSIGN(const Snapshot before, made.run->snapshot());
  CONFORM_TRY(steps(*made.run, 1, 5));
  CONFORM_ASSIGN(Snapshot after, made.run->snapshot());
  for (const auto& [name, bytes] : before) {
    if (name.rfind("idle", 0) == 0 && after[name] != bytes) {
      return fail("'" + name + "' changes although its parameter has no gradient");
    }
  }
  return pass();
}

Outcome round_trip(Context& context) {
  CONFORM_ASSIGN(OptimizerRun whole, make_run(context));
  CONFORM_TRY(steps(*whole.run, 1, 4));
  CONFORM_ASSIGN(const Snapshot saved, whole.run->snapshot());
  CONFORM_TRY(steps(*whole.run, 5, 10));
  CONFORM_ASSIGN(OptimizerRun resumed, make_run(context));
  CONFORM_TRY(resumed.run->restore(saved));
  CONFORM_TRY(steps(*resumed.run, 5, 10));
  CONFORM_ASSIGN(const Snapshot a, whole.run->snapshot());
  CONFORM_ASSIGN(const Snapshot b, resumed.run->snapshot());
  const std::string other = first_difference(a, b);
  return other.empty() ? pass()
                       : fail("10 steps, and 4 + 6 with a save between, end apart: " + other +
                              "; all that an update needs must be declared as state");
}

Outcome zero_lr(Context& context) {
  CONFORM_ASSIGN(const Factory* factory, context.factory());
  std::vector<std::string> sets;
  if (factory->declares("weight_decay")) sets.push_back("weight_decay=0");
  CONFORM_ASSIGN(OptimizerRun made, make_run(context, sets));
  CONFORM_ASSIGN(const Snapshot before, made.run->snapshot());
  for (int64_t k = 1; k <= 3; ++k) {
    CONFORM_TRY(made.run->step(k, 0.0, static_cast<uint64_t>(k)).status());
  }
  CONFORM_ASSIGN(Snapshot after, made.run->snapshot());
  for (const SampleParameter& parameter : sample_parameters()) {
    const auto at = before.find(parameter.name);
    if (at == before.end() || at->second == after[parameter.name]) continue;
    return fail("'" + parameter.name + "' moves at lr 0");
  }
  return pass();
}

Outcome bad_step(Context& context) {
  CONFORM_ASSIGN(OptimizerRun made, make_run(context));
  CONFORM_TRY(steps(*made.run, 1, 2));
  CONFORM_ASSIGN(const Snapshot before, made.run->snapshot());
  made.run->poison(true);
  CONFORM_TRY(made.run->step(3, kRate, 3).status());
  CONFORM_ASSIGN(const Snapshot after, made.run->snapshot());
  const std::string other = first_difference(before, after);
  return other.empty() ? pass() : fail("a step with a NaN gradient changes " + other);
}

}  // namespace

void add_optimizer_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, int level, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, level, title, [run, level](Context& context) -> Outcome {
                        if (level < 5) return run(context);
                        CONFORM_ASSIGN(const bool wraps, is_wrapper(context));
                        return wraps ? not_applicable("it wraps other optimizers") : run(context);
                      }});
  };
  const std::vector<SampleParameter> parameters = sample_parameters();
  for (size_t k = 0; k < parameters.size(); ++k) {
    std::vector<std::string> dims;
    for (const int64_t dim : parameters[k].dims) dims.push_back(std::to_string(dim));
    Case one{"L3.update." + parameters[k].name, 3,
             "a legal update of " + dtype_name(parameters[k].dtype) + "[" + join(dims) + "]",
             [k](Context& context) { return update_of(context, k); }};
    one.batch = "L3.update";
    cases->push_back(std::move(one));
  }
  add("L3.same_graph", 3, "an update is the same graph at every step", declares);
  add("L5.finite", 5, "parameters and state stay finite for 30 steps", finite);
  add("L5.moves", 5, "parameters with a gradient move", moves);
  add("L5.descends", 5, "a quadratic bowl gets lower", descends);
  add("L5.deterministic", 5, "equal steps, equal bits", deterministic);
  add("L5.absent_gradient", 5, "a parameter without a gradient is left alone", absent_gradient);
  add("L5.round_trip", 5, "saved and loaded, it goes on with the same bits", round_trip);
  add("L5.zero_lr", 5, "lr 0 leaves parameters as they are (weight_decay 0)", zero_lr);
  add("L5.bad_step", 5, "a step that is not finite changes nothing", bad_step);
}

}  // namespace gradrack::conform
