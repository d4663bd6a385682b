// SPDX-License-Identifier: Apache-2.0
// See name_pattern.hpp.
#include "core/config/name_pattern.hpp"

#include <algorithm>
#include <set>

namespace gradrack {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }

/// Length of the number that `text` begins with; 0: none.
size_t number_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  return length > 1 && text[0] == '0' ? 0 : length;
}

Status wrong(const std::string& text, const std::string& why) {
  return invalid_argument("got text '" + text +
                          "', wanted a name with places for numbers such as {n}: " + why);
}

}  // namespace

Result<NamePattern> NamePattern::parse(const std::string& text) {
  if (text.empty()) return wrong(text, "it is empty");
  NamePattern pattern;
  pattern.text_ = text;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '}') return wrong(text, "a '}' has no '{'");
    if (text[at] == '{') {
      const size_t end = text.find('}', at);
      if (end == std::string::npos) return wrong(text, "a '{' has no '}'");
      const std::string name = text.substr(at + 1, end - at - 1);
      if (name.empty() || !std::all_of(name.begin(), name.end(), is_small)) {
        return wrong(text, "'{" + name + "}' is not small letters in braces");
      }
      if (!pattern.parts_.empty() && pattern.parts_.back().place) {
        return wrong(text, "two places have nothing between them");
      }
      pattern.parts_.push_back({name, true});
      at = end + 1;
    } else {
      const size_t end = std::min(text.find_first_of("{}", at), text.size());
      pattern.parts_.push_back({text.substr(at, end - at), false});
      at = end;
    }
  }
  return pattern;
}

std::vector<std::string> NamePattern::places() const {
  std::set<std::string> names;
  for (const Part& part : parts_) {
    if (part.place) names.insert(part.text);
  }
  return {names.begin(), names.end()};
}

std::optional<NamePattern::Numbers> NamePattern::match(std::string_view name) const {
  Numbers numbers;
  for (const Part& part : parts_) {
    size_t length = part.text.size();
    if (part.place) {
      length = number_length(name);
      const std::string number(name.substr(0, length));
      if (length == 0 || numbers.emplace(part.text, number).first->second != number) return {};
    } else if (!name.starts_with(part.text)) {
      return {};
    }
    name.remove_prefix(length);
  }
  if (!name.empty()) return {};
  return numbers;
}

std::string NamePattern::fill(const Numbers& numbers) const {
  std::string name;
  for (const Part& part : parts_) name += part.place ? numbers.at(part.text) : part.text;
  return name;
}

}  // namespace gradrack
