// SPDX-License-Identifier: Apache-2.0
// `gradrack explain`: what a run would be, without training: plugins, parameters, placement,
// memory.
#include <fmt/format.h>

#include <cstdio>

#include "core/base/text.hpp"
#include "core/train/commands.hpp"
#include "core/train/evaluate.hpp"

namespace gradrack {

namespace {

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

void print_groups(const Programs& programs) {
  for (const OptimizerGroup& group : programs.groups()) {
    int64_t count = 0;
    for (const size_t member : group.group.members) {
      count += element_count(programs.parameters()[member]);
    }
    line("group", fmt::format("{}: {} tensors, {} parameters, lr {}; {}", group.group.name,
                              group.group.members.size(), count, group.lr,
                              join(group.optimizer.options().lines())));
  }
}

}  // namespace

Status run_explain(Session& session, const ExplainRequest& request) {
  GR_ASSIGN(const Setup setup, make_setup(session));
  GR_ASSIGN(Feed feed, make_feed(session, setup));
  const RunSection& run = session.config.run;
  Programs programs;
  GR_TRY(programs.plan_training(session, setup, feed, run.batch_size, run.accumulate_steps));
  GR_ASSIGN(const std::vector<int64_t> rows,
            evaluation_rows(feed, run.batch_size, run.eval_batches));
  for (const int64_t count : rows) {
    GR_TRY(programs.plan_evaluation(session, setup, feed, count));
  }
  line("config", session.config.file);
  for (const std::string& text : session.config.defaults) line("default", text);
  chosen_line("model", *setup.model);
  chosen_line("data", *setup.data);
  if (feed.info().summary != nullptr) line("", std::string("  ") + feed.info().summary);
  line("optimizer",
       fmt::format("{} ({})", setup.optimizer.factory->name, setup.optimizer.factory->library));
  print_groups(programs);
  chosen_line("lr_schedule", *setup.lr_schedule);
  chosen_line("precision", *setup.precision);
  chosen_line("scheduler", *setup.scheduler);
  for (const auto& backend : setup.backends) chosen_line("backend", backend);
  for (const auto& device : setup.devices) {
    if (device->info().description != nullptr) {
      line("device", device->name() + ": " + device->info().description);
    }
  }
  print_parameters(programs.parameters());
  for (const auto& [name, plan] : programs.plans()) {
    line("plan", name);
    std::fputs(describe(*plan, request.order).c_str(), stdout);
  }
  GR_TRY(programs.check_limit(session.config.memory_limit_bytes));
  line("memory", human_bytes(programs.planned_bytes()) + " in all: tensors of every plan");
  return {};
}

}  // namespace gradrack
