// SPDX-License-Identifier: Apache-2.0
// Option tables: see options.hpp.
#include "core/config/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/text.hpp"
#include "core/config/option_reader.hpp"
#include "core/config/scalar.hpp"

namespace gradrack {
namespace {

// Words that people bring along, and what they are called here.
struct Synonym {
  const char* word;
  const char* key;
};
constexpr Synonym kSynonyms[] = {
    {"learning_rate", "lr"},    {"wd", "weight_decay"},
    {"decay", "weight_decay"},  {"epsilon", "eps"},
    {"bs", "batch_size"},       {"steps", "max_steps"},
    {"max_iters", "max_steps"}, {"grad_clip", "max_grad_norm"},
    {"clip", "max_grad_norm"},  {"name", "plugin"},
    {"type", "plugin"},         {"gradient_accumulation_steps", "accumulate_steps"},
};

std::string nearest_key(const std::string& word, const std::vector<std::string>& known) {
  std::vector<std::string> words = known;
  for (const Synonym& synonym : kSynonyms) words.push_back(synonym.word);
  for (;;) {
    const std::string near = nearest_name(word, words);
    if (near.empty() || std::find(known.begin(), known.end(), near) != known.end()) return near;
    for (const Synonym& synonym : kSynonyms) {
      if (near == synonym.word &&
          std::find(known.begin(), known.end(), synonym.key) != known.end()) {
        return synonym.key;
      }
    }
    words.erase(std::remove(words.begin(), words.end(), near), words.end());
  }
}

Status error_at(const Place& place, const std::string& message) {
  return invalid_argument(place.text() + ": " + message).in_area(Area::kConfig);
}

std::string bounds_text(const gr_option_t& option) {
  const bool low = !std::isinf(option.min);
  const bool high = !std::isinf(option.max);
  std::string text;
  if (low) {
    text += (option.flags & GR_OPTION_MIN_EXCLUSIVE) != 0 ? " > " : " >= ";
    text += yaml_number(option.min);
  }
  if (low && high) text += " and";
  if (high) {
    text += (option.flags & GR_OPTION_MAX_EXCLUSIVE) != 0 ? " < " : " <= ";
    text += yaml_number(option.max);
  }
  return text;
}

Status row_fault(uint32_t row, const char* name, const std::string& fault) {
  return invalid_argument("option " + std::to_string(row) +
                          (name != nullptr ? " ('" + std::string(name) + "')" : "") + ": " + fault);
}

Status check_row(uint32_t row, const gr_option_t& option) {
  if (option.name == nullptr || option.name[0] == '\0') return row_fault(row, nullptr, "no name");
  if (option.help == nullptr) return row_fault(row, option.name, "no help text");
  if (option.type < GR_OPTION_BOOL || option.type > GR_OPTION_STRING_LIST) {
    return row_fault(row, option.name, "type " + std::to_string(option.type) + " is not known");
  }
  if (std::isnan(option.min) || std::isnan(option.max) || option.min > option.max) {
    return row_fault(row, option.name, "its range is empty");
  }
  const bool required = (option.flags & GR_OPTION_REQUIRED) != 0;
  if (required != (option.default_text == nullptr)) {
    return row_fault(
        row, option.name,
        required ? "required, and yet it has a default" : "neither required nor with a default");
  }
  if (required) return {};
  OptionValues scratch;
  const Status status = OptionReader(scratch).read_default(option);
  if (status.code() == GR_OUT_OF_MEMORY) return status;
  if (!status.ok()) {
    return row_fault(row, option.name, "its default is not allowed by itself: " + status.message());
  }
  return {};
}

}  // namespace

OptionValues::OptionValues() : storage_(std::make_unique<Storage>()) {
  OptionReader(*this).finish();
}
OptionValues::OptionValues(OptionValues&&) noexcept = default;
OptionValues& OptionValues::operator=(OptionValues&&) noexcept = default;
OptionValues::~OptionValues() = default;

const gr_options_t& OptionValues::abi() const { return storage_->abi; }

const gr_option_value_t& OptionValues::at(const char* name, int32_t type) const {
  const gr_option_value_t* value = gr_options_find(&storage_->abi, name);
  GR_CHECK(value != nullptr && (type == 0 || value->type == type));
  return *value;
}

bool OptionValues::flag(const char* name) const { return at(name, GR_OPTION_BOOL).i != 0; }
int64_t OptionValues::integer(const char* name) const { return at(name, GR_OPTION_INT).i; }
double OptionValues::number(const char* name) const { return at(name, GR_OPTION_FLOAT).f; }
bool OptionValues::given(const char* name) const { return at(name, 0).is_default == 0; }

std::string OptionValues::text(const char* name) const {
  const gr_option_value_t& value = at(name, 0);
  GR_CHECK(value.s != nullptr);
  return value.s;
}

std::vector<std::string> OptionValues::texts(const char* name) const {
  const gr_option_value_t& value = at(name, GR_OPTION_STRING_LIST);
  return {value.strings, value.strings + value.count};
}

std::vector<std::string> OptionValues::lines() const {
  std::vector<std::string> lines;
  for (const gr_option_value_t& v : storage_->items) {
    std::vector<std::string> parts;
    const bool list = v.type >= GR_OPTION_INT_LIST;
    for (uint64_t k = 0; k < (list ? v.count : 1); ++k) {
      if (v.type == GR_OPTION_BOOL) parts.push_back(v.i != 0 ? "true" : "false");
      if (v.type == GR_OPTION_INT) parts.push_back(std::to_string(v.i));
      if (v.type == GR_OPTION_FLOAT) parts.push_back(yaml_number(v.f));
      if (v.type == GR_OPTION_STRING || v.type == GR_OPTION_PATH) parts.push_back(v.s);
      if (v.type == GR_OPTION_INT_LIST) parts.push_back(std::to_string(v.ints[k]));
      if (v.type == GR_OPTION_FLOAT_LIST) parts.push_back(yaml_number(v.floats[k]));
      if (v.type == GR_OPTION_STRING_LIST) parts.push_back(v.strings[k]);
    }
    const std::string text = join(parts);
    lines.push_back(std::string(v.name) + ": " + (list ? "[" + text + "]" : text) +
                    (v.is_default != 0 ? " (default)" : ""));
  }
  return lines;
}

std::string unknown_key_text(const std::string& path, const std::string& key,
                             const std::vector<std::string>& known, const std::string& owner) {
  const std::string near = nearest_key(key, known);
  std::string text = (path.empty() ? key : path + "." + key) + ": unknown key";
  if (!near.empty()) text += " (did you mean '" + near + "'?)";
  return text + "; " + owner + " knows " + (known.empty() ? "no keys" : join(known));
}

Result<OptionValues> check_options(const OptionScope& scope, const OptionTable& table,
                                   const std::vector<YamlEntry>& entries, const Place& where) {
  std::vector<std::string> known;
  for (const gr_option_t& option : table) known.push_back(option.name);
  for (const YamlEntry& entry : entries) {
    const auto is_key = [&](const std::string& name) { return name == entry.key; };
    if (scope.ignore_unknown || std::any_of(known.begin(), known.end(), is_key) ||
        std::any_of(scope.other_keys.begin(), scope.other_keys.end(), is_key)) {
      continue;
    }
    std::vector<std::string> all = known;
    for (const std::string& key : scope.other_keys) {
      if (std::find(all.begin(), all.end(), key) == all.end()) all.push_back(key);
    }
    return error_at(entry.place, unknown_key_text(scope.path, entry.key, all, scope.owner));
  }
  OptionValues values;
  OptionReader reader(values);
  for (const gr_option_t& option : table) {
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const YamlEntry& e) { return e.key == option.name; });
    const std::string key = scope.path.empty() ? option.name : scope.path + "." + option.name;
    if (entry != entries.end()) {
      const Status status = reader.read(option, entry->value, false);
      if (!status.ok()) {
        const Place& place = entry->value.place.file.empty() ? entry->place : entry->value.place;
        return error_at(place, key + ": " + status.message());
      }
    } else if ((option.flags & GR_OPTION_REQUIRED) != 0) {
      return error_at(where,
                      key + ": missing; wanted " + option_wish(option) + " (" + option.help + ")");
    } else {
      GR_TRY(reader.read_default(option).with_context("default of " + key));
    }
  }
  reader.finish();
  return values;
}

Result<OptionTable> read_option_table(const gr_option_t* first, uint32_t count, uint32_t stride) {
  OptionTable table;
  std::set<std::string> names;
  if (count > 0 && (first == nullptr || stride < sizeof(gr_option_t))) {
    return invalid_argument("options: " + std::to_string(count) + " rows of " +
                            std::to_string(stride) + " bytes; rows have at least " +
                            std::to_string(sizeof(gr_option_t)) + " bytes");
  }
  const auto* at = reinterpret_cast<const char*>(first);
  for (uint32_t row = 0; row < count; ++row, at += stride) {
    gr_option_t option;
    std::memcpy(&option, at, sizeof option);
    if (option.struct_size < sizeof option) {
      return row_fault(row, nullptr, "struct_size is " + std::to_string(option.struct_size));
    }
    GR_TRY(check_row(row, option));
    if (!names.insert(option.name).second) return row_fault(row, option.name, "declared twice");
    table.push_back(option);
  }
  return table;
}

std::string option_wish(const gr_option_t& option) {
  std::string choices;
  if (option.choices != nullptr) {
    choices = option.choices;
    for (size_t at = choices.find('|'); at != std::string::npos; at = choices.find('|', at)) {
      choices.replace(at, 1, ", ");
    }
  }
  const std::string length = option.list_length > 0 ? std::to_string(option.list_length) + " " : "";
  switch (option.type) {
    case GR_OPTION_BOOL:
      return "true or false";
    case GR_OPTION_INT:
      return "a whole number" + bounds_text(option);
    case GR_OPTION_FLOAT:
      return "a number" + bounds_text(option);
    case GR_OPTION_STRING:
      return choices.empty() ? "text" : "one of " + choices;
    case GR_OPTION_PATH:
      return "the path of a file or folder";
    case GR_OPTION_INT_LIST:
      return "a list of " + length + "whole numbers" + bounds_text(option);
    case GR_OPTION_FLOAT_LIST:
      return "a list of " + length + "numbers" + bounds_text(option);
    case GR_OPTION_STRING_LIST:
      return (is_switch_or_list(option) ? "true, false or " : "") +
             (choices.empty() ? "a list of " + length + "texts" : "a list of " + choices);
    default:
      return "a value of an unknown type";
  }
}

bool is_switch_or_list(const gr_option_t& option) {
  const std::string_view standard = option.default_text != nullptr ? option.default_text : "";
  return option.type == GR_OPTION_STRING_LIST && (standard == "true" || standard == "false");
}

const char* option_type_name(int32_t type) {
  static constexpr const char* kNames[] = {"?",    "bool",     "int",        "float",    "text",
                                           "path", "int list", "float list", "text list"};
  return type >= GR_OPTION_BOOL && type <= GR_OPTION_STRING_LIST ? kNames[type] : kNames[0];
}

}  // namespace gradrack
