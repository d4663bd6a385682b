// SPDX-License-Identifier: Apache-2.0
// Chains of plugins: see plugin_section.hpp.
#include "core/config/plugin_section.hpp"

#include <algorithm>
#include <cstring>

#include "core/config/scalar.hpp"

namespace gradrack {
namespace {

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

Status check_name(const YamlNode& node, const std::string& path) {
  const std::string wanted = path + ".plugin: got " + describe(node) +
                             ", wanted the name of a plugin ([a-z0-9_]+) or a list of names";
  if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
    return error_at(node.place, wanted);
  }
  if (node.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
    return error_at(node.place, wanted);
  }
  return {};
}

// Entries of a group that are neither conditions nor unknown here: overrides, checked later against
// the optimizer plugin's options.
Result<ParameterGroup> read_group(const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::kMap) {
    return error_at(node.place,
                    path + ": got " + describe(node) + ", wanted a map with match, rank or stage");
  }
  ParameterGroup group;
  group.path = path;
  group.place = node.place;
  OptionTable given;  // only conditions that stand there: `rank` has no default inside its range
  for (const YamlEntry& entry : node.entries) {
    const auto row = std::find_if(group_keys().begin(), group_keys().end(),
                                  [&](const auto& o) { return entry.key == o.name; });
    if (row != group_keys().end()) {
      given.push_back(*row);
    } else {
      group.overrides.push_back(entry);
    }
  }
  const bool conditions = std::any_of(given.begin(), given.end(), [](const gr_option_t& option) {
    return std::strcmp(option.name, "plugin") != 0 &&
           std::strcmp(option.name, "max_grad_norm") != 0;
  });
  if (!conditions) {
    return error_at(node.place, path + ": no condition; wanted match, rank or stage");
  }
  OptionScope scope{path, "a parameter group", {}, true};
  GR_ASSIGN(const OptionValues values, check_options(scope, given, node.entries, node.place));
  for (const gr_option_t& option : given) {
    if (std::strcmp(option.name, "match") == 0) group.match = values.texts("match");
    if (std::strcmp(option.name, "rank") == 0) group.rank = values.integer("rank");
    if (std::strcmp(option.name, "stage") == 0) group.stage = values.text("stage");
    if (std::strcmp(option.name, "plugin") == 0) group.plugin = values.text("plugin");
    if (std::strcmp(option.name, "max_grad_norm") == 0) {
      group.max_grad_norm = values.number("max_grad_norm");
    }
  }
  return group;
}

Result<std::vector<ParameterGroup>> read_groups(const YamlNode* node, const std::string& path) {
  std::vector<ParameterGroup> groups;
  if (node == nullptr) return groups;
  if (node->kind != YamlNode::Kind::kList) {
    return error_at(node->place, path + ": got " + describe(*node) + ", wanted a list of maps");
  }
  for (size_t k = 0; k < node->items.size(); ++k) {
    GR_ASSIGN(ParameterGroup group, read_group(node->items[k], path + "." + std::to_string(k)));
    groups.push_back(std::move(group));
  }
  return groups;
}

// One map, with one name or several, appended to the chain.
Status read_choices(const SectionSchema& schema, const YamlNode& node, const std::string& path,
                    std::vector<PluginChoice>* chain) {
  if (node.kind != YamlNode::Kind::kMap) {
    return error_at(node.place, path + ": got " + describe(node) +
                                    ", wanted a map such as {plugin: NAME, OPTION: VALUE}");
  }
  const YamlNode* plugin = node.find("plugin");
  if (plugin == nullptr) {
    return error_at(node.place,
                    path + ".plugin: missing; wanted the name of a plugin of kind " + schema.name);
  }
  const bool optimizer = std::string_view(schema.name) == "optimizer";
  PluginChoice choice;
  choice.path = path;
  for (const YamlEntry& entry : node.entries) {
    const bool owned =
        entry.key == "plugin" || (optimizer && (entry.key == "groups" || entry.key == "wrap"));
    if (!owned) choice.options.push_back(entry);
  }
  const OptionScope scope{path, "the host", {}, true};
  GR_ASSIGN(OptionValues host, check_options(scope, schema.keys, choice.options, node.place));
  choice.host = std::make_shared<const OptionValues>(std::move(host));
  if (optimizer) {
    const SectionSchema wrapper{"wrapper", "changes an optimizer's steps", true, nullptr, {}};
    GR_ASSIGN(choice.groups, read_groups(node.find("groups"), path + ".groups"));
    GR_ASSIGN(choice.wrap, read_plugin_list(wrapper, node.find("wrap"), path + ".wrap"));
  }
  std::vector<const YamlNode*> names;
  for (const YamlNode& item : plugin->items) names.push_back(&item);
  if (plugin->kind != YamlNode::Kind::kList) names.push_back(plugin);
  if (names.empty()) return error_at(plugin->place, path + ".plugin: an empty list");
  choice.shares_options = names.size() > 1;
  for (const YamlNode* name : names) {
    GR_TRY(check_name(*name, path));
    choice.name = name->text;
    choice.place = name->place;
    chain->push_back(choice);
  }
  return {};
}

PluginSection default_section(const SectionSchema& schema, const Place& root) {
  PluginSection section;
  section.kind = schema.name;
  section.is_default = true;
  auto host = check_options({schema.name, "the host", {}, true}, schema.keys, {}, root);
  GR_CHECK(host.ok());
  const auto shared = std::make_shared<const OptionValues>(std::move(*host));
  std::string_view rest = schema.default_plugin;
  while (!rest.empty()) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    PluginChoice choice;
    choice.name = rest.substr(0, bar);
    choice.place = {root.file, 0, 0};
    choice.path = schema.name;
    choice.host = shared;
    section.chain.push_back(std::move(choice));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return section;
}

}  // namespace

Status check_no_repeats(const PluginSection& section) {
  for (size_t a = 0; a < section.chain.size(); ++a) {
    for (size_t b = a + 1; b < section.chain.size(); ++b) {
      if (section.chain[a].name == section.chain[b].name) {
        return error_at(section.chain[b].place, section.kind + ": '" + section.chain[b].name +
                                                    "' stands in the chain twice; remove one");
      }
    }
  }
  return {};
}

Result<std::vector<PluginChoice>> read_plugin_list(const SectionSchema& kind, const YamlNode* node,
                                                   const std::string& path) {
  std::vector<PluginChoice> all;
  if (node == nullptr) return all;
  const bool list = node->kind == YamlNode::Kind::kList;
  const size_t count = list ? node->items.size() : 1;
  for (size_t k = 0; k < count; ++k) {
    const YamlNode& item = list ? node->items[k] : *node;
    const std::string at = list ? path + "." + std::to_string(k) : path;
    if (item.kind == YamlNode::Kind::kMap) {
      GR_TRY(read_choices(kind, item, at, &all));
      continue;
    }
    GR_TRY(check_name(item, at));
    PluginChoice choice;
    choice.name = item.text;
    choice.place = item.place;
    choice.path = at;
    all.push_back(std::move(choice));
  }
  return all;
}

Result<PluginSection> read_plugin_section(const SectionSchema& schema, const YamlNode* node,
                                          const Place& root) {
  if (node == nullptr) {
    if (schema.default_plugin != nullptr) return default_section(schema, root);
    return error_at(root, std::string(schema.name) + ": section missing (" + schema.help +
                              "); wanted '" + schema.name + ": {plugin: NAME, ...}'");
  }
  PluginSection section;
  section.kind = schema.name;
  if (node->kind == YamlNode::Kind::kList) {
    if (node->items.empty()) return error_at(node->place, section.kind + ": an empty list");
    for (size_t k = 0; k < node->items.size(); ++k) {
      const std::string path = section.kind + "." + std::to_string(k);
      GR_TRY(read_choices(schema, node->items[k], path, &section.chain));
    }
  } else {
    GR_TRY(read_choices(schema, *node, section.kind, &section.chain));
  }
  GR_TRY(check_no_repeats(section));
  return section;
}

}  // namespace gradrack
