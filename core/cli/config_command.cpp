// SPDX-License-Identifier: Apache-2.0
// Run files shown: see config_command.hpp.
#include "core/cli/config_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/config/option_node.hpp"
#include "core/config/scalar.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

// Not as an aggregate in braces: of those gcc 12 warns falsely where it optimizes.
void add_entry(YamlNode* map, std::string key, YamlNode value) {
  YamlEntry& entry = map->entries.emplace_back();
  entry.key = std::move(key);
  entry.value = std::move(value);
}

YamlNode word(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.plain = false;
  node.text = text;
  return node;
}

// `defaults` below what is there: a key that is given keeps its own spelling.
void add_missing(const std::vector<YamlEntry>& defaults, YamlNode* map) {
  for (const YamlEntry& entry : defaults) {
    if (map->find(entry.key) == nullptr) map->entries.push_back(entry);
  }
}

// Host keys of a section that holds no plugin.
Status fill_host_section(const SectionSchema& schema, YamlNode* root) {
  YamlNode* node = root->find(schema.name);
  if (node == nullptr) {
    add_entry(root, schema.name, {});
    node = &root->entries.back().value;
  }
  node->kind = YamlNode::Kind::kMap;
  // Keys beside the table (objectives, sinks, ...) were checked when the file was read.
  GR_ASSIGN(const OptionValues values,
            check_options({schema.name, "the host", {}, true}, schema.keys, node->entries, {}));
  add_missing(option_entries(values, schema.keys), node);
  return {};
}

// One entry of a chain with what it takes of the common options, and every default.
Result<YamlNode> filled(PluginRegistry& registry, const SectionSchema& schema,
                        const PluginChoice& choice, const YamlNode* written, bool first) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  add_entry(&map, "plugin", word(choice.name));
  const bool per_entry = std::string_view(schema.name) == "optimizer";
  std::vector<std::string> host = option_names(schema.keys);
  if (first || per_entry) {
    for (const YamlEntry& entry : option_entries(*choice.host, schema.keys)) {
      map.entries.push_back(entry);
    }
  }
  const Result<const Factory*> factory = registry.find(schema.name, choice.name);
  if (!factory.ok()) {  // further down the chain, and not there: as it was written
    for (const YamlEntry& entry : choice.options) {
      if (!contains(host, entry.key) && map.find(entry.key) == nullptr)
        map.entries.push_back(entry);
    }
  } else {
    GR_ASSIGN(const OptionValues values, plugin_options(**factory, choice));
    add_missing(option_entries(values, (*factory)->options), &map);
  }
  for (const char* key : {"groups", "wrap"}) {
    const YamlNode* rules = written != nullptr ? written->find(key) : nullptr;
    if (per_entry && rules != nullptr) add_entry(&map, key, *rules);
  }
  return map;
}

// What stands at `path` ("optimizer", "backend.1") of the file, or nullptr.
const YamlNode* written_at(const YamlNode& root, const PluginSection& section, size_t k) {
  const YamlNode* node = root.find(section.kind);
  if (node == nullptr || node->kind != YamlNode::Kind::kList) return node;
  const std::string& path = section.chain[k].path;
  return &node->items[std::stoul(path.substr(path.rfind('.') + 1))];
}

Status fill_plugin_section(PluginRegistry& registry, const SectionSchema& schema,
                           const PluginSection& section, YamlNode* root) {
  std::vector<YamlNode> chain;
  for (size_t k = 0; k < section.chain.size(); ++k) {
    GR_ASSIGN(YamlNode map,
              filled(registry, schema, section.chain[k], written_at(*root, section, k), k == 0));
    chain.push_back(std::move(map));
  }
  YamlNode whole;
  if (chain.size() == 1) {
    whole = std::move(chain[0]);
  } else {
    whole.kind = YamlNode::Kind::kList;
    whole.items = std::move(chain);
  }
  if (YamlNode* node = root->find(section.kind)) {
    *node = std::move(whole);
  } else {
    add_entry(root, section.kind, std::move(whole));
  }
  return {};
}

Result<YamlNode> resolved_root(Session& session) {
  const RunConfig& config = session.config;
  YamlNode root = config.root;
  // These two come from the name of the file where they are not given.
  YamlNode& run = *root.find("run");
  YamlNode named;
  add_entry(&named, "name", word(config.run.name));
  add_entry(&named, "output", word(config.run.output));
  add_missing(named.entries, &run);
  for (const PluginSection* section : config.plugin_sections()) {
    GR_TRY(fill_plugin_section(*session.plugins, *find_section(section->kind), *section, &root));
  }
  YamlNode ordered;
  ordered.kind = YamlNode::Kind::kMap;
  for (const SectionSchema& schema : section_schemas()) {
    if (!schema.plugin) GR_TRY(fill_host_section(schema, &root));
    if (YamlNode* node = root.find(schema.name)) {
      add_entry(&ordered, schema.name, std::move(*node));
    }
  }
  return ordered;
}

}  // namespace

Status show_config(Session& session, bool resolved) {
  YamlNode root = session.config.root;
  if (resolved) {
    GR_TRY(validate_session(session).status());
    GR_ASSIGN(root, resolved_root(session));
  }
  fmt::print("{}", to_yaml(root));
  return {};
}

Status print_schema(PluginRegistry& registry, EventSink& events) {
  fmt::print("{}\n", config_schema(registry, events));
  return {};
}

}  // namespace gradrack
