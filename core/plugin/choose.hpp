// SPDX-License-Identifier: Apache-2.0
// From a section of the run file to instances: find, probe, check options, create; else the next of
// the chain.
//
// Last step of plugin/. Invariant: only a library that is not there or does not load, and
// GR_UNSUPPORTED from probe or create, lead to the next entry, each with an event of kind
// "fallback" that gives the reason; every other error ends the run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/config/run_config.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// What came out of a chain: the entry of the run file and the factory for it.
struct Selection {
  const PluginChoice* choice = nullptr;
  const Factory* factory = nullptr;
};

template <typename Table>
struct Chosen {
  Instance<Table> instance;
  const PluginChoice* choice;  ///< in the section that was given: must outlive this
};

/// What is done with an entry that was found, probed and whose options are right. GR_UNSUPPORTED
/// leads to the next entry.
using Attempt = std::function<Status(const Selection&, OptionValues)>;

enum class ChainUse { kFirst, kAll };

/// Walks the chain in order. kFirst: stops after the first good attempt. kAll (backends): tries
/// each, and wants one good at least. `fallback`: kStrict makes the first failure the error.
Status walk_chain(PluginRegistry& registry, const PluginSection& section, ChainUse use,
                  Fallback fallback, EventSink& events, const Attempt& attempt);

/// Checks a section without making anything: used by `validate`. Group overrides are checked too.
Result<std::vector<Selection>> select_plugins(PluginRegistry& registry,
                                              const PluginSection& section, ChainUse use,
                                              Fallback fallback, EventSink& events);

/// Asks the factory whether it can work on this machine; one without a probe says yes.
Status probe_plugin(const Factory& factory);

/// Options of one choice for one factory.
Result<OptionValues> plugin_options(const Factory& factory, const PluginChoice& choice);

/// The same with a parameter group's overrides in place; an override that is neither `lr` nor an
/// option of the plugin is refused with its place.
Result<OptionValues> group_options(const Factory& factory, const PluginChoice& optimizer,
                                   const ParameterGroup& group);

/// `lr` of a parameter group: its override, or the section's.
Result<double> group_lr(const PluginChoice& optimizer, const ParameterGroup& group);

/// The first of the chain that works. Area::kPlugin when none does.
template <typename Table>
Result<Chosen<Table>> choose(PluginRegistry& registry, const PluginSection& section,
                             EventSink& events) {
  std::optional<Chosen<Table>> chosen;
  GR_TRY(walk_chain(registry, section, ChainUse::kFirst, Fallback::kWarn, events,
                    [&](const Selection& selection, OptionValues options) -> Status {
                      GR_ASSIGN(Instance<Table> instance,
                                Instance<Table>::create(*selection.factory, std::move(options)));
                      chosen.emplace(Chosen<Table>{std::move(instance), selection.choice});
                      return {};
                    }));
  return std::move(*chosen);
}

/// All of the chain that work, in order: for per-node fallback.
template <typename Table>
Result<std::vector<Chosen<Table>>> choose_all(PluginRegistry& registry,
                                              const PluginSection& section, Fallback fallback,
                                              EventSink& events) {
  std::vector<Chosen<Table>> chosen;
  GR_TRY(walk_chain(registry, section, ChainUse::kAll, fallback, events,
                    [&](const Selection& selection, OptionValues options) -> Status {
                      GR_ASSIGN(Instance<Table> instance,
                                Instance<Table>::create(*selection.factory, std::move(options)));
                      chosen.push_back(Chosen<Table>{std::move(instance), selection.choice});
                      return {};
                    }));
  return chosen;
}

}  // namespace gradrack
