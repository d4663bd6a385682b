// SPDX-License-Identifier: Apache-2.0
// See weight_mapping.hpp.
#include "core/config/weight_mapping.hpp"

#include "core/base/folder.hpp"
#include "core/base/text.hpp"
#include "core/config/scalar.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

Status check_map(const YamlNode& node, const std::string& key) {
  if (node.kind == YamlNode::Kind::kMap) return {};
  return error_at(node.place, key + ": got " + describe(node) + ", wanted a map");
}

/// `node` may be nullptr: an empty map.
Result<std::map<std::string, std::string>> read_texts(const YamlNode* node,
                                                      const std::string& key) {
  std::map<std::string, std::string> texts;
  if (node == nullptr) return texts;
  GR_TRY(check_map(*node, key));
  for (const YamlEntry& entry : node->entries) {
    if (entry.value.kind != YamlNode::Kind::kScalar) {
      return error_at(entry.place,
                      key + "." + entry.key + ": got " + describe(entry.value) + ", wanted text");
    }
    texts[entry.key] = entry.value.text;
  }
  return texts;
}

Result<NamePattern> read_pattern(const std::string& text, const Place& place,
                                 const std::string& key) {
  Result<NamePattern> pattern = NamePattern::parse(text);
  if (!pattern.ok()) return error_at(place, key + ": " + pattern.status().message());
  return pattern;
}

Status check_rule(const WeightRule& rule, const YamlNode& node, const std::string& key,
                  bool split_given) {
  const bool several = rule.model.size() > 1;
  if (several && !split_given) {
    return error_at(node.place, key +
                                    ".split: missing; wanted the axis of the file's tensor along "
                                    "which the weights of `model` lie side by side");
  }
  if (!several && split_given) {
    return error_at(node.place, key +
                                    ".split: `model` names one weight; remove the key, or name "
                                    "all that lie in the file's tensor");
  }
  for (const NamePattern& model : rule.model) {
    if (model.places() == rule.file.places()) continue;
    return error_at(node.place, key + ": `file` ('" + rule.file.text() + "') and `model` ('" +
                                    model.text() + "') have different places for numbers");
  }
  return {};
}

Result<WeightRule> read_rule(const YamlNode& node, const std::string& key) {
  GR_TRY(check_map(node, key));
  GR_ASSIGN(
      const OptionValues values,
      check_options({key, "a rule", {}, false}, mapping_rule_keys(), node.entries, node.place));
  WeightRule rule;
  rule.place = node.place.text();
  rule.transpose = values.flag("transpose");
  rule.axis = values.integer("split");
  GR_ASSIGN(rule.file, read_pattern(values.text("file"), node.place, key + ".file"));
  for (const std::string& text : values.texts("model")) {
    GR_ASSIGN(NamePattern model, read_pattern(text, node.place, key + ".model"));
    rule.model.push_back(std::move(model));
  }
  if (rule.model.empty()) {
    return error_at(node.place, key + ".model: got an empty list, wanted names of weights");
  }
  GR_TRY(check_rule(rule, node, key, values.given("split")));
  return rule;
}

Status read_rules(const YamlNode* node, const Place& top, std::vector<WeightRule>* rules) {
  if (node == nullptr) {
    return error_at(top, "rules: missing; wanted a list such as [{file: NAME, model: NAME}]");
  }
  if (node->kind != YamlNode::Kind::kList || node->items.empty()) {
    return error_at(node->place, "rules: got " + describe(*node) +
                                     ", wanted a list such as [{file: NAME, model: NAME}]");
  }
  for (size_t k = 0; k < node->items.size(); ++k) {
    GR_ASSIGN(WeightRule rule, read_rule(node->items[k], "rules." + std::to_string(k)));
    rules->push_back(std::move(rule));
  }
  return {};
}

Status read_needs(const YamlNode* node, std::vector<YamlEntry>* needs) {
  if (node == nullptr) return {};
  GR_TRY(check_map(*node, "needs"));
  if (node->find("plugin") == nullptr) {
    return error_at(node->place, "needs.plugin: missing; wanted the model plugin's name");
  }
  *needs = node->entries;
  return {};
}

Result<WeightMapping> read_mapping(const YamlNode& root, const std::string& path) {
  Place top = root.place;
  if (top.line == 0) top = {path, 0, 0};
  if (root.kind != YamlNode::Kind::kMap) {
    return error_at(top,
                    "got " + describe(root) + ", wanted the keys of a mapping file: rules, ...");
  }
  GR_ASSIGN(const OptionValues values,
            check_options({"", "a mapping file", {"needs", "metadata", "rules", "copies"}, false},
                          mapping_keys(), root.entries, top));
  WeightMapping mapping;
  mapping.path = path;
  mapping.optional_prefix = values.text("optional_prefix");
  mapping.ignore = values.texts("ignore");
  GR_TRY(read_needs(root.find("needs"), &mapping.needs));
  GR_ASSIGN(mapping.metadata, read_texts(root.find("metadata"), "metadata"));
  GR_ASSIGN(mapping.copies, read_texts(root.find("copies"), "copies"));
  GR_TRY(read_rules(root.find("rules"), {path, 0, 0}, &mapping.rules));
  return mapping;
}

}  // namespace

Result<WeightMapping> parse_weight_mapping(std::string_view text, const std::string& path) {
  GR_ASSIGN(const YamlNode root, parse_yaml(text, path));
  return read_mapping(root, path);
}

Result<WeightMapping> load_weight_mapping(const std::string& name) {
  std::string path = name;
  if (name.find('/') == std::string::npos) {
    const std::string folder = install_prefix() + "/share/gradrack/mappings";
    const std::vector<std::string> shipped = names_in_or_none(folder);
    if (!contains(shipped, name)) {
      return not_found("mapping '" + name + "': none of that name comes with the program" +
                       did_you_mean(name, shipped) +
                       "; there are: " + (shipped.empty() ? "none in " + folder : join(shipped)) +
                       ". A file of your own is named with its folder: ./" + name)
          .in_area(Area::kConfig);
    }
    path = folder + "/" + name;
  }
  GR_ASSIGN(const YamlNode root, load_yaml(path));
  return read_mapping(root, path);
}

}  // namespace gradrack
