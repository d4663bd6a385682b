// SPDX-License-Identifier: Apache-2.0
// Planner: see planner.hpp.
#include "core/train/planner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "core/precision/extensions.hpp"
#include "core/precision/retype.hpp"
#include "core/rewrite/remake_gates.hpp"
#include "core/rewrite/simplify.hpp"
#include "core/train/model_file.hpp"

namespace gradrack {

namespace {

FuseSwitch fuse_switch(const RunConfig& config) { return {config.fuse, config.fuse_left_out}; }

// "adamw 1.0.0 {betas: [0.9, 0.999], eps: 1e-08}"; all options but `without`.
template <typename Table>
std::string instance_text(const Instance<Table>& instance, const std::string& without = "") {
  std::vector<std::string> options;
  for (const std::string& line : instance.options().lines()) {
    if (without.empty() || !line.starts_with(without + ": ")) options.push_back(line);
  }
  const Factory& factory = instance.factory();
  return fmt::format("{} {} {{{}}}", factory.name, factory.version, join(options));
}

// The option by which a plugin is told a number of streams; "" when it declares none.
std::string streams_option(const Factory& factory) {
  for (const gr_option_t& option : factory.options) {
    const std::string name = option.name;
    if (name.find("stream") != std::string::npos) return name;
  }
  return "";
}

/// The event of a plan that says why it is in program order.
bool is_about_order(const Plan& plan, const std::string& text) {
  const std::string& reason = plan.schedule.fallback_reason;
  return !reason.empty() && text.ends_with(reason);
}

const char* fallback_text(Fallback fallback) {
  return fallback == Fallback::kStrict ? "strict" : fallback == Fallback::kWarn ? "warn" : "allow";
}

const char* recompute_text(Recompute recompute) {
  return recompute == Recompute::kOff ? "off" : recompute == Recompute::kAuto ? "auto" : "stages";
}

}  // namespace

Result<std::unique_ptr<Planner>> Planner::make(Session& session, const Setup& setup,
                                               const Feed& feed) {
  std::unique_ptr<Planner> planner(new Planner(session, setup, feed));
  GR_ASSIGN(planner->training_,
            build_model(setup.model->instance, GraphUse::kTraining, &feed.info()));
  GR_ASSIGN(planner->parameters_, parameter_facts(planner->training_));
  GR_ASSIGN(planner->rules_,
            RunRules::make(session.config.run, planner->training_, planner->parameters_));
  GR_TRY(planner->read_batch_sets());
  planner->common_ = planner->common_parts();
  return planner;
}

Status Planner::prepare_training() {
  GR_ASSIGN(groups_, make_optimizer_groups(setup_.optimizers, parameters_, session_.events));
  common_.optimizer = optimizer_text();
  training_hash_ = hash_of(training_).text();
  return make_count_classes();
}

// One class for each set of objectives that reaches a parameter: freezing needs no other, because
// what is frozen stays so and its count is not read again.
Status Planner::make_count_classes() {
  std::vector<ObjectiveSet> reach(parameters_.size(), rules_.all());
  if (rules_.objectives().size() > 1) {
    GR_ASSIGN(reach, reaching_objectives(training_));
  }
  for (const ObjectiveSet set : reach) {
    const auto at = std::find_if(counts_.begin(), counts_.end(),
                                 [&](const CountClass& each) { return each.reach == set; });
    count_of_.push_back(static_cast<size_t>(at - counts_.begin()));
    if (at != counts_.end()) continue;
    const std::string number = counts_.empty() ? "" : fmt::format(".{}", counts_.size());
    counts_.push_back({set, kStepNumber + number});
  }
  return {};
}

Status Planner::read_batch_sets() {
  for (const std::vector<std::string>& names : feed_.objective_sets()) {
    const Result<ObjectiveSet> set = rules_.set_of(names);
    if (!set.ok()) {
      return set.status().with_context("data '" + setup_.data->instance.name() + "'");
    }
    batch_sets_.push_back(*set);
  }
  if (batch_sets_.empty()) batch_sets_.push_back(rules_.all());
  return {};
}

Result<std::vector<StepVariant>> Planner::variants() const {
  return step_variants(rules_, session_.config.run, batch_sets_, feed_.largest());
}

PlanKeyParts Planner::common_parts() const {
  const RunConfig& config = session_.config;
  PlanKeyParts parts;
  parts.precision = instance_text(setup_.precision->instance);
  if (!setup_.precision_reason.empty()) parts.precision += ": " + setup_.precision_reason;
  parts.scheduler = instance_text(setup_.scheduler->instance);
  if (!config.auto_off) parts.scheduler += ", whatever it gains";
  parts.fallback = fallback_text(config.fallback);
  parts.fuse = fuse_switch(config).text();
  parts.memory_limit = std::to_string(config.memory_limit_bytes);
  parts.recompute = recompute_text(config.recompute);
  parts.undo = config.run.undo ? "true" : "false";
  const Machine& machine = *setup_.machine;
  for (size_t k = 0; k < machine.devices.size(); ++k) {
    parts.backend_chain += (k > 0 ? ", then " : "") + instance_text(machine.backends[k].instance) +
                           " on " + device_text(*machine.devices[k]);
  }
  return parts;
}

std::string Planner::optimizer_text() const {
  std::string text = fmt::format("max_grad_norm {}", session_.config.run.max_grad_norm);
  for (const OptimizerGroup& group : groups_) {
    std::vector<std::string> members;
    for (const size_t k : group.group.members) members.push_back(parameters_[k].name);
    // A scalar brings the rate, so it is no part of the plan.
    text += fmt::format("; {} ({}) for {}", instance_text(group.optimizer, "lr"), group.lr_scalar,
                        join(members));
    for (const auto& wrapper : group.wrappers) text += ", in " + instance_text(wrapper);
    if (group.ema_decay > 0) text += fmt::format(", ema {}", group.ema_decay);
    if (group.max_grad_norm > 0) text += fmt::format(", max_grad_norm {}", group.max_grad_norm);
  }
  return text;
}

// "tokens int64[12, 64], targets int64[12, 64]".
Result<std::string> Planner::shapes(const Graph& model, int64_t rows,
                                    const BatchSizes& sizes) const {
  GR_ASSIGN(const Bindings bindings, feed_.bindings(model, rows, sizes));
  std::string text;
  for (const Value& value : model.values()) {
    if (value.source != Source::kInput) continue;
    GR_ASSIGN(const std::vector<int64_t> dims, bind(value.type.shape, bindings));
    text += fmt::format("{}{} {}[{}]", text.empty() ? "" : ", ", value.name,
                        dtype_name(value.type.dtype), fmt::join(dims, ", "));
  }
  return text;
}

Result<PlanKey> Planner::key(const StepVariant& variant) const {
  PlanKeyParts parts = common_;
  parts.program = shape_name(variant.shape);
  parts.model = training_hash_;
  parts.training = "true";
  GR_ASSIGN(parts.shapes, shapes(training_, session_.config.run.batch_size, variant.sizes));
  parts.trainable = rules_.trained_text(variant.stretch);
  parts.objectives = rules_.text(variant.active);
  if (variant.earlier != 0) parts.objectives += "; before: " + rules_.text(variant.earlier);
  if (rules_.weighted()) parts.objectives += "; weighted";
  return PlanKey(std::move(parts));
}

Result<PlanKey> Planner::evaluation_key(int64_t rows, const BatchSizes& sizes) {
  GR_ASSIGN(const Graph* const model, evaluation_model());
  PlanKeyParts parts = common_;
  parts.program = "evaluation";
  parts.model = evaluation_hash_;
  parts.training = "false";
  GR_ASSIGN(parts.shapes, shapes(*model, rows, sizes));
  parts.trainable = "none";
  parts.objectives = rules_.text(rules_.all());
  parts.optimizer = "none";
  parts.recompute = "none";
  for (const auto& [name, state] : evaluation_states()) {
    parts.optimizer += ", " + state + " in place of " + name;
  }
  return PlanKey(std::move(parts));
}

Result<Graph*> Planner::evaluation_model() {
  if (evaluation_ == nullptr) {
    GR_ASSIGN(Graph graph,
              build_model(setup_.model->instance, GraphUse::kEvaluation, &feed_.info()));
    if (objective_names(graph) != rules_.objectives()) {
      return invalid_argument(
                 fmt::format("model '{}' declares the objectives {} for training and {} for "
                             "evaluation: wanted the same, in one order",
                             setup_.model->instance.name(), join(rules_.objectives()),
                             join(objective_names(graph))))
          .in_area(Area::kPlugin);
    }
    evaluation_hash_ = hash_of(graph).text();
    evaluation_ = std::make_unique<Graph>(std::move(graph));
  }
  return evaluation_.get();
}

std::vector<ObjectiveTerm> Planner::terms(const StepVariant& variant) const {
  std::vector<ObjectiveTerm> terms;
  for (size_t k = 0; k < rules_.objectives().size(); ++k) {
    const bool active = (variant.active >> k & 1) != 0, earlier = (variant.earlier >> k & 1) != 0;
    if (!active && !earlier) continue;
    const std::string& name = rules_.objectives()[k];
    terms.push_back(
        {name, rules_.weighted() ? weight_scalar_name(name) : std::string(), active, earlier});
  }
  return terms;
}

Result<Graph> Planner::step_graph(const StepVariant& variant) const {
  const std::vector<std::string>& trained = rules_.trained(variant.stretch);
  StepGraphRequest request;
  request.objectives = terms(variant);
  request.shape = variant.shape;
  GR_ASSIGN(const TrainingGraph training,
            training_graph(training_, setup_.precision->instance.table(), trained,
                           request.objectives, variant.shape));
  request.graph = &training.graph;
  request.passes = training.passes;
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const std::string& name = parameters_[k].name;
    if (std::find(trained.begin(), trained.end(), name) == trained.end()) continue;
    request.parameters.push_back({name, counts_[count_of_[k]].scalar});
  }
  request.groups = group_updates();
  request.max_grad_norm = session_.config.run.max_grad_norm;
  request.rounding = update_rounding_of(setup_.precision->instance.table());
  request.loss_scaled = loss_scale_of(setup_.precision->instance.table()) != nullptr;
  request.can_take_back = session_.config.run.undo;  // Trainer::read_results
  GR_ASSIGN(const Graph graph, make_step_graph(request));
  return simplified(graph);
}

std::map<std::string, std::string> Planner::evaluation_states() const {
  std::map<std::string, std::string> states;
  for (const OptimizerGroup& group : groups_) {
    if (group.evaluation_state.empty()) continue;
    for (const size_t k : group.group.members) {
      const std::string& name = parameters_[k].name;
      states[name] = name + "." + group.evaluation_state;
    }
  }
  return states;
}

std::vector<GroupUpdate> Planner::group_updates() const {
  std::vector<GroupUpdate> updates;
  for (const OptimizerGroup& group : groups_) {
    GroupUpdate update{&group.optimizer.table(), group.optimizer.name(), group.lr_scalar, {}, {},
                       group.ema_decay,          group.max_grad_norm};
    for (const auto& wrapper : group.wrappers) update.wrappers.push_back(&wrapper.table());
    for (const size_t k : group.group.members) update.parameters.push_back(parameters_[k].name);
    updates.push_back(std::move(update));
  }
  return updates;
}

Result<Graph> Planner::simplified(const Graph& graph) {
  GR_ASSIGN(const Graph simple, simplify(graph));
  return remake_gates(simple);
}

Result<std::shared_ptr<const Plan>> Planner::build(const Graph& graph, const Bindings& bindings,
                                                   const std::string& recomputed) const {
  PlanRequest request;
  request.graph = &graph;
  request.recomputed = recomputed;
  request.bindings = bindings;
  request.segments = setup_.machine->segments;
  request.devices = setup_.device_list();
  request.fallback = session_.config.fallback;
  request.scheduler_name = setup_.scheduler->instance.name();
  request.scheduler = &setup_.scheduler->instance.table();
  request.auto_off = session_.config.auto_off;
  request.streams_option = streams_option(setup_.scheduler->instance.factory());
  for (const auto& backend : setup_.machine->backends) {
    request.device_streams_options.push_back(streams_option(backend.instance.factory()));
  }
  request.memory_limit = session_.config.memory_limit_bytes;
  request.undo = session_.config.run.undo;
  request.take_back = request.undo && !clips(group_updates(), session_.config.run.max_grad_norm);
  request.fuse = fuse_switch(session_.config);
  auto made = make_plan(request);
  // That no backend of the chain runs a node is about the plugins that were chosen.
  const bool chain = !made.ok() && made.status().code() == GR_UNSUPPORTED;
  if (chain) return made.status().in_area(Area::kPlugin);
  return made;
}

Result<Planned> Planner::get(PlanKey key, bool afresh, const Bindings& bindings,
                             const PlanCache::Build& build) const {
  PlanCache::Answer plan = afresh ? build() : setup_.machine->plans.get(key, build, &bindings);
  if (!plan.ok()) return plan.status();
  for (const std::string& text : (*plan)->events) {
    if (!orders_held_ || !is_about_order(**plan, text)) emit_fallback(text);
  }
  return Planned{std::move(key), *plan};
}

void Planner::emit_fallback(const std::string& text) const {
  const Level level = session_.config.fallback == Fallback::kAllow ? Level::kInfo : Level::kWarn;
  session_.events.emit({"fallback", level, text});
}

void Planner::tell_order(const std::string& name, const Plan& plan) const {
  for (const std::string& text : plan.events) {
    if (is_about_order(plan, text)) emit_fallback(name + ": " + text);
  }
  const std::string fusion = summary_of(plan.fusion);
  if (!fusion.empty()) session_.events.emit({"fusion", Level::kInfo, name + ": " + fusion});
}

Result<Planned> Planner::plan(const StepVariant& variant, bool afresh) const {
  GR_ASSIGN(PlanKey made, key(variant));
  const int64_t rows = session_.config.run.batch_size;
  GR_ASSIGN(const Bindings bindings, feed_.bindings(training_, rows, variant.sizes));
  return get(std::move(made), afresh, bindings, [&]() -> PlanCache::Answer {
    GR_ASSIGN(const Graph simple, step_graph(variant));
    if (session_.config.recompute != Recompute::kStages) return build(simple, bindings);
    GR_ASSIGN(const BoundGraph bound, bind_graph(simple, bindings));
    return build_forgetful(bound, bindings, forget_blocks(forward_blocks(simple)));
  });
}

Result<Planned> Planner::plan_evaluation(int64_t rows, const BatchSizes& sizes, bool afresh) {
  GR_ASSIGN(PlanKey made, evaluation_key(rows, sizes));
  GR_ASSIGN(const Graph* const model, evaluation_model());
  GR_ASSIGN(const Bindings bindings, feed_.bindings(*model, rows, sizes));
  return get(std::move(made), afresh, bindings, [&]() -> PlanCache::Answer {
    GR_ASSIGN(const Graph graph,
              evaluation_graph(*model, setup_.precision->instance.table(), evaluation_states()));
    GR_ASSIGN(const Graph simple, simplified(graph));
    return build(simple, bindings);
  });
}

Status Planner::declare_model(Store* store, uint64_t seed) const {
  GR_ASSIGN(const Graph graph, evaluation_graph(training_, setup_.precision->instance.table()));
  return store->declare_sources(graph, seed);
}

Status Planner::begin_weights(Store* store) const {
  return begin_from_file(setup_.model->instance, training_, store);
}

}  // namespace gradrack
