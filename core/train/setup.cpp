// SPDX-License-Identifier: Apache-2.0
// Setup: see setup.hpp.
#include "core/train/setup.hpp"

#include <fmt/format.h>

namespace gradrack {

namespace {

std::vector<GroupRule> rules_of(const PluginChoice& optimizer) {
  std::vector<GroupRule> rules;
  for (const ParameterGroup& group : optimizer.groups) {
    rules.push_back({group.match, group.stage, group.rank.value_or(-1)});
  }
  return rules;
}

// "cpu {threads: 2}, reference {}".
std::string chain_text(const PluginSection& section) {
  std::string text;
  for (const PluginChoice& choice : section.chain) {
    YamlNode options;
    options.kind = YamlNode::Kind::kMap;
    options.entries = choice.options;
    text += (text.empty() ? "" : ", ") + choice.name + " " + to_yaml(options);
  }
  return text;
}

YamlEntry no_decay_entry(const Place& place) {
  YamlEntry entry;
  entry.key = "weight_decay";
  entry.place = place;
  entry.value.kind = YamlNode::Kind::kScalar;
  entry.value.text = "0";
  entry.value.place = place;
  return entry;
}

// The first of the chain of which an instance can be made; the groups get theirs later, when the
// parameters are known.
Result<Selection> choose_optimizer(Session& session) {
  Selection chosen;
  const Status status = walk_chain(
      *session.plugins, session.config.optimizer, ChainUse::kFirst, Fallback::kWarn, session.events,
      [&](const Selection& selection, OptionValues options) -> Status {
        for (const ParameterGroup& group : selection.choice->groups) {
          GR_TRY(group_options(*selection.factory, *selection.choice, group).status());
          GR_TRY(group_lr(*selection.choice, group).status());
        }
        GR_TRY(Instance<gr_optimizer_t>::create(*selection.factory, std::move(options)).status());
        chosen = selection;
        return {};
      });
  if (!status.ok()) return status;
  return chosen;
}

Result<OptimizerGroup> make_group(const Selection& optimizer, Group group, size_t index) {
  const PluginChoice& choice = *optimizer.choice;
  ParameterGroup rule;
  if (group.rule >= 0) {
    rule = choice.groups[static_cast<size_t>(group.rule)];
  } else if (group.no_decay && optimizer.factory->declares("weight_decay")) {
    rule.overrides.push_back(no_decay_entry(choice.place));
  }
  GR_ASSIGN(const double lr, group_lr(choice, rule));
  GR_ASSIGN(OptionValues options, group_options(*optimizer.factory, choice, rule));
  GR_ASSIGN(Instance<gr_optimizer_t> instance,
            Instance<gr_optimizer_t>::create(*optimizer.factory, std::move(options)));
  return OptimizerGroup{std::move(group), std::move(instance), lr, fmt::format("lr.{}", index)};
}

}  // namespace

std::vector<Device*> Setup::device_list() const {
  std::vector<Device*> list;
  for (const auto& device : machine->devices) list.push_back(device.get());
  return list;
}

std::string Machine::plans_text() const {
  const SegmentStatistics s = segments->statistics();
  return fmt::format("{}; segments {} built, {} reused, {} kernels", plans.statistics().text(),
                     s.built, s.reused, s.kernels);
}

Result<std::shared_ptr<Machine>> make_machine(Session& session) {
  const RunConfig& config = session.config;
  auto machine = std::make_shared<Machine>(static_cast<size_t>(config.run.plan_cache_limit));
  machine->chain = chain_text(config.backend);
  machine->plans.listen([&events = session.events](const Event& event) { events.emit(event); });
  GR_ASSIGN(machine->backends, choose_all<gr_backend_t>(*session.plugins, config.backend,
                                                        config.fallback, session.events));
  for (const Chosen<gr_backend_t>& backend : machine->backends) {
    GR_ASSIGN(std::unique_ptr<Device> device,
              Device::make(backend.instance.name(), &backend.instance.table()));
    machine->devices.push_back(std::move(device));
  }
  return machine;
}

Result<Setup> make_setup(Session& session, std::shared_ptr<Machine> machine) {
  PluginRegistry& plugins = *session.plugins;
  EventSink& events = session.events;
  const RunConfig& config = session.config;
  Setup setup;
  if (machine == nullptr) {
    GR_ASSIGN(machine, make_machine(session));
  } else if (machine->chain != chain_text(config.backend)) {
    return invalid_argument(fmt::format("{}: backend is {}, but the devices of this process are {}",
                                        config.file, chain_text(config.backend), machine->chain));
  }
  setup.machine = std::move(machine);
  GR_ASSIGN(setup.data, choose<gr_data_t>(plugins, config.data, events));
  GR_ASSIGN(setup.model, choose<gr_model_t>(plugins, config.model, events));
  GR_ASSIGN(setup.precision, choose<gr_precision_t>(plugins, config.precision, events));
  GR_ASSIGN(setup.scheduler, choose<gr_scheduler_t>(plugins, config.scheduler, events));
  GR_ASSIGN(setup.lr_schedule, choose<gr_lr_schedule_t>(plugins, config.lr_schedule, events));
  GR_ASSIGN(setup.optimizer, choose_optimizer(session));
  return setup;
}

Result<std::vector<OptimizerGroup>> make_optimizer_groups(
    const Selection& optimizer, const std::vector<ParameterFacts>& parameters) {
  auto routed = route_parameters(parameters, rules_of(*optimizer.choice));
  if (!routed.ok()) return routed.status().with_context(optimizer.choice->place.text());
  std::vector<OptimizerGroup> groups;
  for (Group& group : *routed) {
    GR_ASSIGN(OptimizerGroup made, make_group(optimizer, std::move(group), groups.size()));
    groups.push_back(std::move(made));
  }
  return groups;
}

}  // namespace gradrack
