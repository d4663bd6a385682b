// SPDX-License-Identifier: Apache-2.0
// Chains: see choose.hpp.
#include "core/plugin/choose.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/config/scalar.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

std::vector<std::string> host_keys(const std::string& kind) {
  const SectionSchema* schema = find_section(kind);
  std::vector<std::string> keys = {"plugin"};
  if (schema != nullptr && schema->plugin) {
    for (const std::string& name : option_names(schema->keys)) keys.push_back(name);
  }
  if (kind == "optimizer") keys.insert(keys.end(), {"groups", "wrap"});
  return keys;
}

// Found and able to work on this machine; else the reason, as GR_UNSUPPORTED where falling back is
// right.
Result<const Factory*> find_usable(PluginRegistry& registry, const PluginChoice& choice,
                                   const std::string& kind) {
  Result<const Factory*> found = registry.find(kind, choice.name);
  if (!found.ok()) {
    const Status& status = found.status();
    const bool absent = status.code() == GR_NOT_FOUND;
    const std::string place = choice.place.text();
    return Status(absent ? static_cast<int32_t>(GR_UNSUPPORTED) : status.code(),
                  place + ": " + status.message())
        .in_area(Area::kPlugin);
  }
  GR_TRY(probe_plugin(**found));
  return *found;
}

// Kinds whose chains are used together: with common options each takes those that it declares.
bool works_together(const std::string& kind) {
  return kind == "backend" || kind == "optimizer" || kind == "metrics";
}

// Each option must be known to one of those that share it.
Status check_common_keys(const PluginSection& section, const std::vector<Selection>& used) {
  std::vector<std::string> known = host_keys(section.kind);
  std::vector<std::string> names;
  for (const Selection& selection : used) {
    if (!selection.choice->shares_options) continue;
    names.push_back(selection.factory->name);
    for (const std::string& name : option_names(selection.factory->options)) {
      if (!contains(known, name)) known.push_back(name);
    }
  }
  for (const Selection& selection : used) {
    if (!selection.choice->shares_options) continue;
    std::vector<YamlEntry> entries = selection.choice->options;
    for (const ParameterGroup& group : selection.choice->groups) {
      entries.insert(entries.end(), group.overrides.begin(), group.overrides.end());
    }
    for (const YamlEntry& entry : entries) {
      if (contains(known, entry.key)) continue;
      return invalid_argument(entry.place.text() + ": " +
                              unknown_key_text(selection.choice->path, entry.key, known,
                                               section.kind + " " + join(names, " or ")))
          .in_area(Area::kConfig);
    }
  }
  return {};
}

Status emit_fallback(const PluginSection& section, size_t k, Fallback fallback,
                     const Status& reason, EventSink& events) {
  const std::string& name = section.chain[k].name;
  const bool last = k + 1 == section.chain.size();
  const std::string next = last ? "" : section.chain[k + 1].name;
  events.emit(
      {"fallback",
       fallback == Fallback::kAllow ? Level::kInfo : Level::kWarn,
       section.kind + ": '" + name + "' is not used" + (last ? "" : ", next is '" + next + "'") +
           ": " + reason.message(),
       {{"kind", section.kind}, {"plugin", name}, {"next", next}, {"reason", reason.message()}}});
  return {};
}

Status none_works(const PluginSection& section, const std::vector<Status>& reasons) {
  if (reasons.size() == 1) return reasons[0].in_area(Area::kPlugin);
  std::string text = section.kind + ": none of the chain works";
  for (size_t k = 0; k < reasons.size(); ++k) {
    text += "; " + section.chain[k].name + ": " + reasons[k].message();
  }
  return unsupported(text).in_area(Area::kPlugin);
}

std::vector<YamlEntry> merged(const std::vector<YamlEntry>& base,
                              const std::vector<YamlEntry>& overrides) {
  std::vector<YamlEntry> all = overrides;
  for (const YamlEntry& entry : base) {
    const bool replaced = std::any_of(overrides.begin(), overrides.end(),
                                      [&](const YamlEntry& o) { return o.key == entry.key; });
    if (!replaced) all.push_back(entry);
  }
  return all;
}

// A message of create that names an option gets that option's place in front.
Status with_option_place(const Status& status, const PluginChoice& choice) {
  if (status.code() != GR_INVALID_ARGUMENT) return status;
  for (const YamlEntry& entry : choice.options) {
    if (status.message().find("): " + entry.key + ": ") != std::string::npos) {
      return status.with_context(entry.place.text());
    }
  }
  return status;
}

}  // namespace

Status probe_plugin(const Factory& factory) {
  if (factory.probe == nullptr) return {};
  const std::string who = factory.text();
  GR_TRY(plugins_still_run().with_context(who));
  gr_error_t err = {};
  try {
    return status_from(factory.probe(factory.host, &err), err).with_context(who);
  } catch (...) {
    return internal_error(who + ": probe threw an exception across the C interface");
  }
}

Result<OptionValues> plugin_options(const Factory& factory, const PluginChoice& choice) {
  OptionScope scope;
  scope.path = choice.path;
  scope.owner = factory.kind + " plugin '" + factory.name + "'";
  scope.other_keys = host_keys(factory.kind);
  scope.ignore_unknown = choice.shares_options && works_together(factory.kind);
  return check_options(scope, factory.options, choice.options, choice.place);
}

Result<OptionValues> group_options(const Factory& factory, const PluginChoice& optimizer,
                                   const ParameterGroup& group) {
  OptionScope scope;
  scope.path = group.path;
  scope.owner = "a group of " + factory.kind + " plugin '" + factory.name + "'";
  scope.other_keys = {"lr"};
  // First the overrides alone: what is unknown among them must not hide behind the section's keys.
  OptionTable optional = factory.options;
  for (gr_option_t& option : optional) {
    const bool overridden =
        std::any_of(group.overrides.begin(), group.overrides.end(),
                    [&](const YamlEntry& entry) { return entry.key == option.name; });
    if (!overridden && option.default_text == nullptr) option.name = "";  // given by the section
  }
  optional.erase(std::remove_if(optional.begin(), optional.end(),
                                [](const gr_option_t& o) { return o.name[0] == '\0'; }),
                 optional.end());
  scope.ignore_unknown = optimizer.shares_options;
  GR_TRY(check_options(scope, optional, group.overrides, group.place).status());
  scope.ignore_unknown = true;  // the section's own keys were checked with the section
  return check_options(scope, factory.options, merged(optimizer.options, group.overrides),
                       group.place);
}

Status walk_chain(PluginRegistry& registry, const PluginSection& section, ChainUse use,
                  Fallback fallback, EventSink& events, const Attempt& attempt) {
  std::vector<Status> reasons;
  std::vector<Selection> used;
  for (size_t k = 0; k < section.chain.size(); ++k) {
    const PluginChoice& choice = section.chain[k];
    Result<const Factory*> factory = find_usable(registry, choice, section.kind);
    Status status = factory.status();
    if (status.ok()) {
      GR_ASSIGN(OptionValues options, plugin_options(**factory, choice));
      status = attempt({&choice, *factory}, std::move(options));
    }
    if (status.ok()) {
      used.push_back({&choice, *factory});
      events.emit({"plugin_chosen",
                   Level::kDebug,
                   section.kind + ": " + choice.name + " " + (*factory)->version + " from " +
                       (*factory)->library,
                   {{"kind", section.kind}, {"plugin", choice.name}}});
      if (use == ChainUse::kFirst) return {};
      continue;
    }
    if (status.code() != GR_UNSUPPORTED) return with_option_place(status, choice);
    if (fallback == Fallback::kStrict) {
      return status.with_context("fallback is strict").in_area(Area::kPlugin);
    }
    reasons.push_back(status);
    if (section.chain.size() > 1) GR_TRY(emit_fallback(section, k, fallback, status, events));
  }
  if (used.empty()) return none_works(section, reasons);
  return check_common_keys(section, used);
}

Result<std::vector<Selection>> select_plugins(PluginRegistry& registry,
                                              const PluginSection& section, ChainUse use,
                                              Fallback fallback, EventSink& events) {
  std::vector<Selection> selected;
  GR_TRY(walk_chain(registry, section, use, fallback, events,
                    [&](const Selection& selection, OptionValues) -> Status {
                      for (const ParameterGroup& group : selection.choice->groups) {
                        GR_TRY(
                            group_options(*selection.factory, *selection.choice, group).status());
                        GR_TRY(group_lr(*selection.choice, group).status());
                      }
                      selected.push_back(selection);
                      return {};
                    }));
  return selected;
}

Result<double> group_lr(const PluginChoice& optimizer, const ParameterGroup& group) {
  const OptionScope scope{group.path, "a parameter group", {}, true};
  OptionTable lr = find_section("optimizer")->keys;
  for (const YamlEntry& entry : group.overrides) {
    if (entry.key != "lr") continue;
    GR_ASSIGN(const OptionValues values, check_options(scope, lr, group.overrides, group.place));
    return values.number("lr");
  }
  return base_lr(optimizer);
}

}  // namespace gradrack
