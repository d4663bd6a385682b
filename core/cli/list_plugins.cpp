// SPDX-License-Identifier: Apache-2.0
// `plugins list` and `plugins inspect`: see list_commands.hpp.
#include <fmt/format.h>

#include <cstdio>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/cli/list_commands.hpp"
#include "core/plan/backend_patterns.hpp"
#include "core/plugin/choose.hpp"

namespace gradrack {
namespace {

// Text of a plugin on its way to a terminal.
std::string shown(const std::string& text) { return printable(text); }

// Why a plugin cannot be used here; known only of a loaded one.
std::string remark(const Candidate& candidate, const Offer& offer) {
  if (candidate.library() == nullptr) return "";
  for (const Factory& factory : candidate.library()->factories) {
    if (factory.kind != offer.kind || factory.name != offer.name) continue;
    const Status usable = probe_plugin(factory);
    return usable.ok() ? "" : " [not on this machine: " + shown(usable.message()) + "]";
  }
  return "";
}

void print_offer(const Candidate& candidate, const Offer& offer) {
  fmt::print("{:<12} {:<16} {:<8} {}{}\n", offer.kind, shown(offer.name), shown(offer.version),
             shown(offer.help), remark(candidate, offer));
}

void print_faults(PluginRegistry& registry) {
  for (const NameClash& clash : registry.clashes()) {
    fmt::print("\n{} twice, so neither can be used: {} '{}'\n  {}\n  {}\n",
               clash.kind.empty() ? "there" : "offered",
               clash.kind.empty() ? "library id" : clash.kind, shown(clash.name), clash.first_path,
               clash.second_path);
  }
  if (!registry.failures().empty()) fmt::print("\nlibraries refused:\n");
  for (const LoadFailure& failure : registry.failures()) {
    fmt::print("  {}\n", shown(failure.text()));
  }
}

void print_options(const Factory& factory) {
  fmt::print("{} '{}' {}: {}\n  library: {}\n", factory.kind, shown(factory.name),
             shown(factory.version), shown(factory.help), factory.library);
  const Status usable = probe_plugin(factory);
  if (!usable.ok()) fmt::print("  not on this machine: {}\n", shown(usable.message()));
  if (factory.options.empty()) fmt::print("  no options\n");
  for (const gr_option_t& option : factory.options) {
    const std::string standard = option.default_text == nullptr ? "required"
                                 : option.default_text[0] == '\0'
                                     ? "default empty"
                                     : "default " + std::string(option.default_text);
    fmt::print("  {}: {}; {}\n      {}\n", shown(option.name), option_wish(option), shown(standard),
               shown(option.help));
  }
}

/// What a backend runs as one kernel; it has to be made for that, with its default options.
void print_patterns(const Factory& factory) {
  if (factory.kind != "backend" || !probe_plugin(factory).ok()) return;
  PluginChoice choice;
  choice.name = factory.name;
  choice.path = "backend";
  auto options = plugin_options(factory, choice);
  if (!options.ok()) return;  // one is required, so there is no backend to ask
  const auto made = Instance<gr_backend_t>::create(factory, std::move(*options));
  if (!made.ok()) {
    fmt::print("  patterns: unknown: {}\n", shown(made.status().message()));
    return;
  }
  const auto patterns = patterns_of(&made->table());
  if (!patterns.ok()) {
    fmt::print("  patterns: wrong: {}\n", shown(patterns.status().message()));
    return;
  }
  if (!patterns->empty()) fmt::print("  patterns that run as one kernel, first ones first:\n");
  for (const BackendPattern& pattern : *patterns) {
    fmt::print("    {}{}: {}\n        {}\n", shown(pattern.name),
               pattern.across() ? " (across kinds and stages)" : "", shown(pattern.help),
               shown(pattern.expression));
  }
}

Status inspect_library(PluginRegistry& registry, const std::string& path) {
  GR_ASSIGN(const std::unique_ptr<Candidate> named, named_library(path, registry.policy()));
  const Status status = named->load(registry.policy(), registry.events());
  if (!status.ok()) return status.with_context(path).in_area(Area::kPlugin);
  const Library& library = *named->library();
  fmt::print("{} {} ({}), plugin ABI {}.{}\n", shown(library.id), shown(library.version),
             library.path, GR_ABI_MAJOR, library.abi_minor);
  for (const Factory& factory : library.factories) {
    print_options(factory);
    print_patterns(factory);
  }
  return {};
}

}  // namespace

Status list_plugins(PluginRegistry& registry, bool load) {
  if (load) (void)registry.libraries();
  for (const std::string& kind : plugin_kinds()) {
    for (const auto& candidate : registry.catalogue()) {
      for (const Offer& offer : candidate->offers()) {
        if (offer.kind == kind) print_offer(*candidate, offer);
      }
    }
  }
  print_faults(registry);
  fmt::print("\nfolders searched:\n");
  for (const SearchFolder& folder : registry.folders()) {
    fmt::print("  {} ({})\n", folder.path, folder.origin);
  }
  return {};
}

Status inspect_plugin(PluginRegistry& registry, const std::string& name) {
  if (name.size() > 3 && name.compare(name.size() - 3, 3, ".so") == 0) {
    return inspect_library(registry, name);
  }
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    GR_ASSIGN(const Factory* factory, registry.find(name.substr(0, slash), name.substr(slash + 1)));
    print_options(*factory);
    print_patterns(*factory);
    return {};
  }
  std::vector<std::string> names;
  bool found = false;
  for (const auto& candidate : registry.catalogue()) {
    for (const Offer& offer : candidate->offers()) {
      names.push_back(offer.name);
      if (offer.name != name) continue;
      GR_ASSIGN(const Factory* factory, registry.find(offer.kind, offer.name));
      print_options(*factory);
      print_patterns(*factory);
      found = true;
    }
  }
  if (found) return {};
  return not_found("no plugin '" + name + "'" + did_you_mean(name, names) +
                   "; `gradrack plugins list` shows what there is")
      .in_area(Area::kPlugin);
}

}  // namespace gradrack
