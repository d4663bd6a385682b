// SPDX-License-Identifier: Apache-2.0
// `gradrack explain`: what a run would be, without training: plugins, parameters, placement,
// memory.
#include <fmt/format.h>

#include <cstdio>

#include "core/base/text.hpp"
#include "core/plan/plan_class.hpp"
#include "core/plan/plan_timeline.hpp"
#include "core/train/commands.hpp"
#include "core/train/evaluate.hpp"

namespace gradrack {

namespace {

constexpr size_t kTimelineColumns = 84;  // with the name of its row, a line of a wide terminal

void line(const std::string& label, const std::string& text) {
  std::fputs(fmt::format("{:<12} {}\n", label, text).c_str(), stdout);
}

template <typename Table>
void chosen_line(const std::string& kind, const Chosen<Table>& chosen) {
  const Factory& factory = chosen.instance.factory();
  line(kind, fmt::format("{} {} ({})", factory.name, factory.version, factory.library));
  for (const std::string& option : chosen.instance.options().lines()) line("", "  " + option);
}

int64_t element_count(const ParameterFacts& parameter) {
  int64_t count = 1;
  for (const int64_t dim : parameter.dims) count *= dim;
  return count;
}

void print_parameters(const std::vector<ParameterFacts>& parameters) {
  std::vector<std::pair<std::string, int64_t>> stages;
  int64_t total = 0;
  for (const ParameterFacts& parameter : parameters) {
    const int64_t count = element_count(parameter);
    total += count;
    const std::string stage = parameter.stage.empty() ? "(no stage)" : parameter.stage;
    if (stages.empty() || stages.back().first != stage) stages.emplace_back(stage, 0);
    stages.back().second += count;
  }
  line("parameters", fmt::format("{} in {} tensors", total, parameters.size()));
  for (const auto& [stage, count] : stages) line("", fmt::format("  {:<20} {:>10}", stage, count));
}

void print_groups(const Planner& planner) {
  for (const OptimizerGroup& group : planner.groups()) {
    int64_t count = 0;
    std::vector<std::string> names;
    for (const size_t member : group.group.members) {
      count += element_count(planner.parameters()[member]);
      names.push_back(planner.parameters()[member].name);
    }
    line("group", fmt::format("{} {}: {} tensors, {} parameters, lr {}; {}", group.name(),
                              group.group.name, group.group.members.size(), count, group.lr,
                              join(group.optimizer.options().lines())));
    for (const auto& wrapper : group.wrappers) {
      line("", fmt::format("  {}: {}", wrapper.name(), join(wrapper.options().lines())));
    }
    if (group.ema_decay > 0) line("", fmt::format("  averaged, ema_decay {}", group.ema_decay));
    line("", "  " + join(names));
  }
}

void print_rules(const RunConfig& config, const RunRules& rules) {
  if (rules.weighted()) {
    for (size_t k = 0; k < rules.objectives().size(); ++k) {
      line("objective", fmt::format("{}: weight {}", rules.objectives()[k], rules.weights()[k]));
    }
    if (rules.objectives().size() > 1 && config.run.accumulate_steps > 1) {
      line("",
           "  several objectives over several microbatches: what they share is passed back "
           "once for each");
    }
  }
  for (size_t k = 0; k < rules.stretches() && rules.stretches() > 1; ++k) {
    line("trained", fmt::format("from step {}: {}", rules.begin(k), rules.trained_text(k)));
  }
}

void print_plugins(const Session& session, Programs& programs) {
  const Setup& setup = programs.setup();
  line("config", session.config.file);
  for (const std::string& text : session.config.defaults) line("default", text);
  chosen_line("model", *setup.model);
  chosen_line("data", *setup.data);
  const char* summary = programs.feed().info().summary;
  if (summary != nullptr) line("", std::string("  ") + summary);
  for (const OptimizerChoice& choice : setup.optimizers) {
    line("optimizer",
         fmt::format("{} ({})", choice.optimizer.factory->name, choice.optimizer.factory->library));
    for (const Selection& wrapper : choice.wrappers) {
      line("", fmt::format("  in {} ({})", wrapper.factory->name, wrapper.factory->library));
    }
  }
  print_groups(programs.planner());
  chosen_line("lr_schedule", *setup.lr_schedule);
  chosen_line("precision", *setup.precision);
  if (!setup.precision_reason.empty()) line("", "  " + setup.precision_reason);
  chosen_line("scheduler", *setup.scheduler);
  for (const auto& backend : setup.machine->backends) chosen_line("backend", backend);
  for (const PluginChoice& sink : session.config.sinks.chain) line("metrics", sink.name);
  for (const auto& device : setup.machine->devices) {
    if (device->info().description != nullptr) {
      line("device", device->name() + ": " + device->info().description);
    }
  }
}

// "key" lines of one plan, one part each; hashes and texts as they are compared.
void print_key(const PlanKey& key) {
  const PlanKeyParts& parts = key.parts();
  line("key", key.digest().text());
  for (const auto& [name, text] : {std::pair{"program", &parts.program},
                                   {"model", &parts.model},
                                   {"training", &parts.training},
                                   {"shapes", &parts.shapes},
                                   {"trainable", &parts.trainable},
                                   {"objectives", &parts.objectives},
                                   {"precision", &parts.precision},
                                   {"optimizer", &parts.optimizer},
                                   {"backends", &parts.backend_chain},
                                   {"fallback", &parts.fallback},
                                   {"fuse", &parts.fuse},
                                   {"scheduler", &parts.scheduler},
                                   {"limit", &parts.memory_limit},
                                   {"undo", &parts.undo},
                                   {"recompute", &parts.recompute}}) {
    line("", fmt::format("  {:<10} {}", name, *text));
  }
}

}  // namespace

Status run_explain(Session& session, const ExplainRequest& request) {
  GR_ASSIGN(const std::unique_ptr<Programs> programs, Programs::make(session));
  GR_TRY(programs->plan_training());
  GR_TRY(programs->plan_evaluations());
  GR_TRY(programs->order_by_times(false));
  GR_TRY(programs->keep_limit());
  programs->tell_orders();
  print_plugins(session, *programs);
  print_parameters(programs->planner().parameters());
  print_rules(session.config, programs->rules());
  for (const Programs::NamedPlan& each : programs->plans()) {
    line("plan", each.name);
    if (request.plans) print_key(*each.key);
    if (request.graph) std::fputs(dump(each.plan->plan_class->lowered.graph).c_str(), stdout);
    std::fputs(describe(*each.plan, request.order).c_str(), stdout);
    std::fputs(prediction_text(*each.plan, kTimelineColumns).c_str(), stdout);
  }
  if (request.plans) line("plans", programs->setup().machine->plans_text());
  GR_TRY(programs->check_limit());
  line("memory", human_bytes(programs->planned_bytes()) + " in all: tensors of every plan");
  return {};
}

}  // namespace gradrack
