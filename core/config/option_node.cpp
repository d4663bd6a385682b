// SPDX-License-Identifier: Apache-2.0
// Options as YAML: see option_node.hpp.
#include "core/config/option_node.hpp"

#include "core/config/scalar.hpp"

namespace gradrack {
namespace {

YamlNode scalar(std::string text, bool plain) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.plain = plain;
  node.text = std::move(text);
  return node;
}

YamlNode element(const gr_option_value_t& value, uint64_t k) {
  if (value.type == GR_OPTION_INT_LIST) return scalar(std::to_string(value.ints[k]), true);
  if (value.type == GR_OPTION_FLOAT_LIST) return scalar(yaml_number(value.floats[k]), true);
  return scalar(value.strings[k], false);
}

YamlNode node_of(const gr_option_value_t& value, const gr_option_t& option) {
  switch (value.type) {
    case GR_OPTION_BOOL:
      return scalar(value.i != 0 ? "true" : "false", true);
    case GR_OPTION_INT:
      return scalar(std::to_string(value.i), true);
    case GR_OPTION_FLOAT:
      return scalar(yaml_number(value.f), true);
    case GR_OPTION_STRING:
    case GR_OPTION_PATH:
      return scalar(value.s, false);
    default:
      break;
  }
  if (is_switch_or_list(option) && value.count == 1) {
    const YamlNode word = scalar(value.strings[0], true);
    if (read_bool(word)) return word;
  }
  YamlNode list;
  list.kind = YamlNode::Kind::kList;
  for (uint64_t k = 0; k < value.count; ++k) list.items.push_back(element(value, k));
  return list;
}

}  // namespace

std::vector<YamlEntry> option_entries(const OptionValues& values, const OptionTable& table) {
  std::vector<YamlEntry> entries;
  for (const gr_option_t& option : table) {
    const gr_option_value_t* value = gr_options_find(&values.abi(), option.name);
    GR_CHECK(value != nullptr);
    if (value->type == GR_OPTION_PATH && value->s[0] == '\0') continue;
    YamlEntry& entry = entries.emplace_back();
    entry.key = option.name;
    entry.value = node_of(*value, option);
  }
  return entries;
}

}  // namespace gradrack
