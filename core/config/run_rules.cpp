// SPDX-License-Identifier: Apache-2.0
// Rules of section `run`: see run_rules.hpp.
#include "core/config/run_rules.hpp"

#include "core/config/scalar.hpp"
#include "core/config/schema.hpp"

namespace gradrack {
namespace {

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

Result<OptionValues> read_map(const YamlNode& node, const std::string& path,
                              const OptionTable& keys, const char* owner) {
  if (node.kind != YamlNode::Kind::kMap) {
    return error_at(node.place, path + ": got " + describe(node) + ", wanted a map of keys");
  }
  return check_options({path, owner, {}, false}, keys, node.entries, node.place);
}

}  // namespace

std::vector<std::string> run_rule_keys() { return {"objectives", "freeze", "init_from"}; }

Result<std::vector<ObjectiveRule>> read_objective_rules(const YamlNode* node) {
  std::vector<ObjectiveRule> rules;
  if (node == nullptr) return rules;
  if (node->kind != YamlNode::Kind::kMap) {
    return error_at(node->place, "run.objectives: got " + describe(*node) +
                                     ", wanted a map such as {NAME: {weight: 1, every: 1}}");
  }
  for (const YamlEntry& entry : node->entries) {
    GR_ASSIGN(const OptionValues values, read_map(entry.value, "run.objectives." + entry.key,
                                                  objective_keys(), "an objective's rule"));
    rules.push_back({entry.key, values.number("weight"), values.integer("every"), entry.place});
  }
  return rules;
}

Result<std::vector<FreezeRule>> read_freeze_rules(const YamlNode* node) {
  std::vector<FreezeRule> rules;
  if (node == nullptr) return rules;
  if (node->kind != YamlNode::Kind::kList) {
    return error_at(node->place, "run.freeze: got " + describe(*node) +
                                     ", wanted a list such as [{stage: NAME, from_step: 1}]");
  }
  for (size_t k = 0; k < node->items.size(); ++k) {
    const std::string path = "run.freeze." + std::to_string(k);
    const YamlNode& item = node->items[k];
    GR_ASSIGN(const OptionValues values, read_map(item, path, freeze_keys(), "a freeze rule"));
    FreezeRule rule{values.texts("match"), values.text("stage"), values.integer("from_step"),
                    item.place, path};
    if (rule.match.empty() && rule.stage.empty()) {
      return error_at(item.place, path + ": no condition; wanted match or stage");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<InitFrom> read_init_from(const YamlNode* node) {
  if (node == nullptr) return InitFrom{};
  if (node->kind == YamlNode::Kind::kScalar) return InitFrom{node->text, ""};
  if (node->kind != YamlNode::Kind::kMap) {
    return error_at(node->place, "run.init_from: got " + describe(*node) +
                                     ", wanted a path, or a map such as {file: PATH, mapping: "
                                     "NAME}");
  }
  GR_ASSIGN(const OptionValues values,
            read_map(*node, "run.init_from", init_from_keys(), "run.init_from"));
  return InitFrom{values.text("file"), values.text("mapping")};
}

}  // namespace gradrack
