// SPDX-License-Identifier: Apache-2.0
// Reading one value: see option_reader.hpp. Ranges, choices and list lengths are checked here.
#include "core/config/option_reader.hpp"

#include <cmath>

#include "core/base/text.hpp"
#include "core/config/scalar.hpp"

namespace gradrack {
std::vector<std::string> split_choices(const char* choices) {
  std::vector<std::string> words(1);
  for (const char* c = choices; *c != '\0'; ++c) {
    if (*c == '|') {
      words.emplace_back();
    } else {
      words.back() += *c;
    }
  }
  return words;
}

namespace {

Status mismatch(const gr_option_t& option, const YamlNode& node, const std::string& hint = "") {
  return invalid_argument("got " + describe(node) + ", wanted " + option_wish(option) + hint);
}

// +inf passes only where no upper limit is declared; NaN and -inf never do.
bool in_range(const gr_option_t& option, double x) {
  if (std::isnan(x) || x == -INFINITY) return false;
  const bool above =
      (option.flags & GR_OPTION_MIN_EXCLUSIVE) != 0 ? x > option.min : x >= option.min;
  if (std::isinf(option.max)) return above;
  const bool below =
      (option.flags & GR_OPTION_MAX_EXCLUSIVE) != 0 ? x < option.max : x <= option.max;
  return above && below;
}

bool is_choice(const char* choices, const std::string& text) {
  std::string_view rest = choices;
  for (;;) {
    const size_t bar = rest.find('|');
    if (rest.substr(0, bar) == text) return true;
    if (bar == std::string_view::npos) return false;
    rest.remove_prefix(bar + 1);
  }
}

bool is_yes_or_no(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return false;
  for (const char* word : {"yes", "no", "on", "off", "y", "n", "true", "false", "True", "False"}) {
    if (node.text == word) return true;
  }
  return false;
}

int32_t element_type(int32_t type) {
  switch (type) {
    case GR_OPTION_INT_LIST:
      return GR_OPTION_INT;
    case GR_OPTION_FLOAT_LIST:
      return GR_OPTION_FLOAT;
    case GR_OPTION_STRING_LIST:
      return GR_OPTION_STRING;
    default:
      return 0;
  }
}

}  // namespace

const char* OptionReader::keep(std::string_view text) {
  return storage_.strings.emplace_back(text).c_str();
}

Status OptionReader::read_scalar(const gr_option_t& option, const YamlNode& node,
                                 gr_option_value_t* value) {
  switch (option.type) {
    case GR_OPTION_BOOL: {
      const std::optional<bool> flag = read_bool(node);
      if (!flag) {
        return mismatch(option, node, is_yes_or_no(node) ? ", without quotes" : "");
      }
      value->i = *flag ? 1 : 0;
      return {};
    }
    case GR_OPTION_INT: {
      const std::optional<int64_t> whole = read_int(node);
      if (!whole || !in_range(option, static_cast<double>(*whole))) return mismatch(option, node);
      value->i = *whole;
      value->f = static_cast<double>(*whole);
      return {};
    }
    case GR_OPTION_FLOAT: {
      const std::optional<double> number = read_float(node);
      if (!number || !in_range(option, *number)) return mismatch(option, node);
      value->f = *number;
      return {};
    }
    default:
      break;
  }
  if (node.kind != YamlNode::Kind::kScalar) return mismatch(option, node);
  const bool chosen = option.choices != nullptr && is_choice(option.choices, node.text);
  if (!chosen && (read_bool(node) || read_float(node))) {
    return mismatch(option, node, ": put it in quotes if it is meant as text");
  }
  if (option.type == GR_OPTION_PATH && node.text.empty()) return mismatch(option, node);
  if (option.choices != nullptr && !chosen) {
    return mismatch(option, node, did_you_mean(node.text, split_choices(option.choices)));
  }
  value->s = keep(node.text);
  return {};
}

Status OptionReader::read_list(const gr_option_t& option, const std::vector<const YamlNode*>& items,
                               gr_option_value_t* value) {
  gr_option_t element = option;
  element.type = element_type(option.type);
  std::vector<int64_t>& ints = storage_.ints.emplace_back();
  std::vector<double>& floats = storage_.floats.emplace_back();
  std::vector<const char*>& pointers = storage_.pointers.emplace_back();
  for (size_t k = 0; k < items.size(); ++k) {
    gr_option_value_t one = {};
    GR_TRY(read_scalar(element, *items[k], &one).with_context("element " + std::to_string(k)));
    ints.push_back(one.i);
    floats.push_back(one.f);
    pointers.push_back(one.s);
  }
  value->ints = ints.data();
  value->floats = floats.data();
  value->strings = pointers.data();
  value->count = items.size();
  return {};
}

Status OptionReader::read(const gr_option_t& option, const YamlNode& node, bool is_default) {
  gr_option_value_t value = {};
  value.name = keep(option.name);
  value.type = option.type;
  value.is_default = is_default ? 1 : 0;
  if (node.kind == YamlNode::Kind::kNull) {
    return mismatch(option, node, ": give a value or remove the key");
  }
  if (element_type(option.type) == 0) {
    GR_TRY(read_scalar(option, node, &value));
  } else {
    std::vector<const YamlNode*> items;
    YamlNode word;
    for (const YamlNode& item : node.items) items.push_back(&item);
    // One text may stand for a list of one: `match: "*.bias"`.
    if (is_switch_or_list(option) && read_bool(node)) {
      word = node;
      word.plain = false;  // the word itself
      items.push_back(&word);
    } else if (option.type == GR_OPTION_STRING_LIST && node.kind == YamlNode::Kind::kScalar) {
      items.push_back(&node);
    } else if (node.kind != YamlNode::Kind::kList) {
      return mismatch(option, node);
    }
    if (option.list_length > 0 && items.size() != static_cast<size_t>(option.list_length)) {
      return mismatch(option, node, ", has " + std::to_string(items.size()));
    }
    GR_TRY(read_list(option, items, &value));
  }
  storage_.items.push_back(value);
  return {};
}

Status OptionReader::read_default(const gr_option_t& option) {
  YamlNode node;
  const bool text = option.type == GR_OPTION_STRING || option.type == GR_OPTION_PATH;
  if (text) {  // taken as it stands: a default "" or "3" needs no quotes
    node.kind = YamlNode::Kind::kScalar;
    node.plain = false;
    node.text = option.default_text;
  } else {
    GR_ASSIGN(node, parse_yaml(option.default_text, "default"));
  }
  if (option.type == GR_OPTION_PATH && node.text.empty()) {  // an optional path that is not given
    gr_option_value_t value = {};
    value.name = keep(option.name);
    value.type = option.type;
    value.is_default = 1;
    value.s = keep("");
    storage_.items.push_back(value);
    return {};
  }
  return read(option, node, true);
}

void OptionReader::finish() {
  storage_.abi.struct_size = sizeof(gr_options_t);
  storage_.abi.item_stride = sizeof(gr_option_value_t);
  storage_.abi.items = storage_.items.data();
  storage_.abi.count = storage_.items.size();
}

}  // namespace gradrack
