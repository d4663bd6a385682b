// SPDX-License-Identifier: Apache-2.0
// Optimizers of a run: see optimizers.hpp.
#include "core/train/optimizers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "gradrack/direction.h"

namespace gradrack {

namespace {

std::vector<GroupRule> rules_of(const PluginChoice& optimizer) {
  std::vector<GroupRule> rules;
  for (const ParameterGroup& group : optimizer.groups) {
    rules.push_back({group.match, group.stage, group.rank.value_or(-1)});
  }
  return rules;
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

const void* extension_of(const gr_optimizer_t& optimizer, const char* id) {
  if (optimizer.get_extension == nullptr) return nullptr;
  return optimizer.get_extension(optimizer.self, id);
}

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

// The rules of a choice: right options, and plugins that stand in the chain.
Status check_groups(const PluginSection& section, const Selection& selection) {
  for (const ParameterGroup& group : selection.choice->groups) {
    GR_TRY(group_options(*selection.factory, *selection.choice, group).status());
    GR_TRY(group_lr(*selection.choice, group).status());
    if (group.plugin.empty()) continue;
    std::vector<std::string> names;
    for (const PluginChoice& choice : section.chain) names.push_back(choice.name);
    if (!contains(names, group.plugin)) {
      return error_at(group.place, fmt::format("{}.plugin: '{}' is not in the chain ({})",
                                               group.path, group.plugin, join(names)));
    }
    const bool elsewhere = group.plugin != selection.choice->name;
    if (elsewhere && !selection.choice->shares_options && !group.overrides.empty()) {
      return error_at(group.place, fmt::format("{}: '{}' takes these parameters, so its options "
                                               "belong under that optimizer",
                                               group.path, group.plugin));
    }
  }
  return {};
}

Status check_is_wrapper(const PluginChoice& choice, const gr_optimizer_t& made, bool wanted) {
  if ((extension_of(made, GR_EXT_WRAPPER) != nullptr) == wanted) return {};
  return error_at(choice.place,
                  wanted ? fmt::format("{}: '{}' is an optimizer, and wraps none: name it as "
                                       "optimizer.plugin",
                                       choice.path, choice.name)
                         : fmt::format("{}: '{}' changes the steps of another optimizer and is "
                                       "none itself: name one as plugin, and '{}' as wrap",
                                       choice.path, choice.name, choice.name));
}

Result<std::vector<Selection>> choose_wrappers(PluginRegistry& plugins, const PluginChoice& choice,
                                               EventSink& events) {
  std::vector<Selection> wrappers;
  for (const PluginChoice& wrapper : choice.wrap) {
    PluginSection section;
    section.kind = "optimizer";
    section.chain = {wrapper};
    GR_TRY(walk_chain(plugins, section, ChainUse::kFirst, Fallback::kWarn, events,
                      [&](const Selection& found, OptionValues options) -> Status {
                        GR_ASSIGN(const auto made, Instance<gr_optimizer_t>::create(
                                                       *found.factory, std::move(options)));
                        GR_TRY(check_is_wrapper(wrapper, made.table(), true));
                        wrappers.push_back({&wrapper, found.factory});
                        return {};
                      }));
  }
  return wrappers;
}

Result<OptimizerGroup> make_group(const OptimizerChoice& chosen, Group group, size_t index) {
  const PluginChoice& choice = *chosen.optimizer.choice;
  const Factory& factory = *chosen.optimizer.factory;
  ParameterGroup rule;
  if (group.rule >= 0) {
    rule = choice.groups[static_cast<size_t>(group.rule)];
  } else if (group.no_decay && factory.declares("weight_decay")) {
    rule.overrides.push_back(no_decay_entry(choice.place));
  }
  GR_ASSIGN(const double lr, group_lr(choice, rule));
  GR_ASSIGN(OptionValues options, group_options(factory, choice, rule));
  GR_ASSIGN(Instance<gr_optimizer_t> instance,
            Instance<gr_optimizer_t>::create(factory, std::move(options)));
  OptimizerGroup made{std::move(group),
                      std::move(instance),
                      {},
                      lr,
                      fmt::format("lr.{}", index),
                      choice.host->number("ema_decay"),
                      rule.max_grad_norm,
                      {}};
  for (const Selection& wrapper : chosen.wrappers) {
    GR_ASSIGN(OptionValues values, plugin_options(*wrapper.factory, *wrapper.choice));
    GR_ASSIGN(Instance<gr_optimizer_t> wraps,
              Instance<gr_optimizer_t>::create(*wrapper.factory, std::move(values)));
    made.wrappers.push_back(std::move(wraps));
  }
  const void* const state = extension_of(made.optimizer.table(), GR_EXT_EVALUATION_STATE);
  if (state != nullptr && made.ema_decay > 0) {
    return error_at(choice.place, fmt::format("{}.ema_decay: '{}' averages its weights itself; "
                                              "remove it",
                                              choice.path, choice.name));
  }
  if (state != nullptr) made.evaluation_state = static_cast<const char*>(state);
  if (made.ema_decay > 0) made.evaluation_state = "ema";
  return made;
}

// GR_UNSUPPORTED with the reason where the optimizer leaves the parameter to the next.
Status takes(const gr_optimizer_t& optimizer, const ParameterFacts& parameter) {
  const gr_parameter_info_t info = {sizeof info,
                                    GR_FLOAT32,
                                    parameter.name.c_str(),
                                    parameter.stage.c_str(),
                                    parameter.dims.data(),
                                    static_cast<uint32_t>(parameter.dims.size()),
                                    parameter.role};
  gr_state_t states[GR_MAX_STATES] = {};
  uint32_t count = GR_MAX_STATES;
  gr_error_t err = {};
  return status_from(optimizer.declare_state(optimizer.self, &info, states, &count, &err), err);
}

// Walks the chain and hands out the parameters.
class Router {
 public:
  Router(const std::vector<ParameterFacts>& parameters, EventSink& events)
      : parameters_(parameters), events_(events), taken_(parameters.size(), false) {}

  Status offer(const OptimizerChoice& chosen, const std::string& next) {
    const PluginChoice& choice = *chosen.optimizer.choice;
    auto routed = route_parameters(parameters_, rules_of(choice));
    if (!routed.ok()) return routed.status().with_context(choice.place.text());
    left_.clear();
    for (Group& group : *routed) GR_TRY(offer_group(chosen, std::move(group)));
    if (left_.empty()) return {};
    const std::string text =
        fmt::format("optimizer {} leaves {} of {} tensors{}: {}", choice.name, left_.size(),
                    parameters_.size(), next.empty() ? "" : " to " + next, left_.front());
    if (next.empty())
      return invalid_argument(choice.place.text() + ": " + text +
                              "; add an optimizer for them: plugin: [" + choice.name + ", adamw]")
          .in_area(Area::kConfig);
    events_.emit({"routing", Level::kInfo, text, {{"plugin", choice.name}, {"next", next}}});
    return {};
  }

  std::vector<OptimizerGroup> groups;

 private:
  Status offer_group(const OptimizerChoice& chosen, Group group) {
    const PluginChoice& choice = *chosen.optimizer.choice;
    std::vector<size_t> open;
    for (const size_t k : group.members) {
      if (!taken_[k]) open.push_back(k);
    }
    if (open.empty()) return {};
    if (group.rule >= 0) {
      const ParameterGroup& rule = choice.groups[static_cast<size_t>(group.rule)];
      if (!rule.plugin.empty() && rule.plugin != choice.name) {
        for (const size_t k : open) {
          left_.push_back(parameters_[k].name + ": " + rule.path + " leaves it to " + rule.plugin);
        }
        return {};
      }
    }
    group.members.clear();
    GR_ASSIGN(OptimizerGroup made, make_group(chosen, std::move(group), groups.size()));
    for (const size_t k : open) {
      const Status status = takes(made.optimizer.table(), parameters_[k]);
      if (status.ok()) {
        taken_[k] = true;
        made.group.members.push_back(k);
      } else if (status.code() == GR_UNSUPPORTED) {
        left_.push_back(status.message());
      } else {
        return status.with_context("optimizer " + choice.name + ", parameter " +
                                   parameters_[k].name);
      }
    }
    if (!made.group.members.empty()) groups.push_back(std::move(made));
    return {};
  }

  const std::vector<ParameterFacts>& parameters_;
  EventSink& events_;
  std::vector<bool> taken_;
  std::vector<std::string> left_;  // by the last choice: why
};

}  // namespace

std::string OptimizerGroup::name() const {
  std::string text = optimizer.name();
  for (const Instance<gr_optimizer_t>& wrapper : wrappers) text = wrapper.name() + "(" + text + ")";
  return text;
}

Result<std::vector<OptimizerChoice>> choose_optimizers(PluginRegistry& plugins,
                                                       const PluginSection& section,
                                                       EventSink& events) {
  std::vector<OptimizerChoice> chain;
  GR_TRY(walk_chain(plugins, section, ChainUse::kAll, Fallback::kWarn, events,
                    [&](const Selection& selection, OptionValues options) -> Status {
                      GR_TRY(check_groups(section, selection));
                      GR_ASSIGN(const auto made, Instance<gr_optimizer_t>::create(
                                                     *selection.factory, std::move(options)));
                      GR_TRY(check_is_wrapper(*selection.choice, made.table(), false));
                      GR_ASSIGN(std::vector<Selection> wrappers,
                                choose_wrappers(plugins, *selection.choice, events));
                      chain.push_back({selection, std::move(wrappers)});
                      return {};
                    }));
  return chain;
}

Result<std::vector<OptimizerGroup>> make_optimizer_groups(
    const std::vector<OptimizerChoice>& chain, const std::vector<ParameterFacts>& parameters,
    EventSink& events) {
  Router router(parameters, events);
  for (size_t k = 0; k < chain.size(); ++k) {
    const bool last = k + 1 == chain.size();
    GR_TRY(router.offer(chain[k], last ? "" : chain[k + 1].optimizer.choice->name));
  }
  return std::move(router.groups);
}

}  // namespace gradrack
