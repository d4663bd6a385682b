// SPDX-License-Identifier: Apache-2.0
// Comparing configurations: see compare.hpp.
#include "core/config/compare.hpp"

#include <algorithm>
#include <map>

#include "core/config/scalar.hpp"

namespace gradrack {
namespace {

struct Leaf {
  std::string key, value;
  Place place;
};

// One spelling for each value: 1e-3 and 0.001 are one, "1" and 1 are not.
std::string canonical(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kNull) return "nothing";
  if (const auto flag = read_bool(node)) return *flag ? "true" : "false";
  if (const auto whole = read_int(node)) return std::to_string(*whole);
  if (const auto real = read_float(node)) return yaml_number(*real);
  return node.text;
}

std::string inner(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// `plugin: x` and `plugin: [x]` are one, and so are a list of one section and that section.
void flatten(const YamlNode& node, const std::string& path, std::vector<Leaf>* leaves) {
  if (node.kind == YamlNode::Kind::kMap) {
    for (const YamlEntry& entry : node.entries)
      flatten(entry.value, inner(path, entry.key), leaves);
  } else if (node.kind == YamlNode::Kind::kList && node.items.size() == 1) {
    flatten(node.items[0], path, leaves);
  } else if (node.kind == YamlNode::Kind::kList) {
    if (node.items.empty()) leaves->push_back({path, "[]", node.place});
    for (size_t k = 0; k < node.items.size(); ++k) {
      flatten(node.items[k], inner(path, std::to_string(k)), leaves);
    }
  } else {
    leaves->push_back({path, canonical(node), node.place});
  }
}

const std::string* find(const std::vector<Leaf>& leaves, const std::string& key) {
  for (const Leaf& leaf : leaves) {
    if (leaf.key == key) return &leaf.value;
  }
  return nullptr;
}

// What stands for a key that is not written: its default, which for a list has keys of its own.
std::optional<std::string> value_by_default(const std::string& key, const DefaultOf& default_of) {
  std::string owner = key;
  for (;;) {
    if (const std::optional<std::string> text = default_of(owner)) {
      const Result<YamlNode> node = parse_yaml("v: " + *text, "default");
      std::vector<Leaf> leaves;
      if (node.ok()) flatten(*node->find("v"), owner, &leaves);
      const std::string* const value = find(leaves, key);
      return value != nullptr ? std::optional(*value) : std::nullopt;
    }
    const size_t dot = owner.rfind('.');
    if (dot == std::string::npos) return {};
    owner.resize(dot);
  }
}

}  // namespace

std::vector<ConfigDifference> compare_configs(const YamlNode& before, const YamlNode& now,
                                              const DefaultOf& default_of) {
  std::vector<Leaf> old_leaves, new_leaves;
  flatten(before, "", &old_leaves);
  flatten(now, "", &new_leaves);
  std::vector<ConfigDifference> differences;
  const auto compare = [&](const std::string& key, const std::string* old_value,
                           const std::string* new_value, const Place& place) {
    const std::string by_default = value_by_default(key, default_of).value_or("nothing");
    const std::string was = old_value != nullptr ? *old_value : by_default;
    const std::string is = new_value != nullptr ? *new_value : by_default;
    if (was != is) differences.push_back({key, was, is, place});
  };
  for (const Leaf& leaf : new_leaves) {
    compare(leaf.key, find(old_leaves, leaf.key), &leaf.value, leaf.place);
  }
  for (const Leaf& leaf : old_leaves) {
    if (find(new_leaves, leaf.key) == nullptr) compare(leaf.key, &leaf.value, nullptr, now.place);
  }
  return differences;
}

}  // namespace gradrack
