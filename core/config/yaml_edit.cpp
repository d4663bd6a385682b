// SPDX-License-Identifier: Apache-2.0
// Changing and writing a tree: `--set a.b=c`, and YAML text again. See yaml.hpp.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/config/scalar.hpp"
#include "core/config/yaml.hpp"

namespace gradrack {
namespace {

Status set_error(std::string_view assignment, const std::string& message) {
  return invalid_argument("--set " + std::string(assignment) + ": " + message)
      .in_area(Area::kConfig);
}

// The node that `segment` names below `node`; maps grow as needed.
Result<YamlNode*> step_into(YamlNode& node, const std::string& segment, const Place& place,
                            std::string_view assignment) {
  if (node.kind == YamlNode::Kind::kNull) {
    node.kind = YamlNode::Kind::kMap;
    node.place = place;
  }
  if (node.kind == YamlNode::Kind::kList) {
    size_t index = 0;
    const char* end = segment.data() + segment.size();
    const auto [stop, error] = std::from_chars(segment.data(), end, index);
    if (error == std::errc() && stop == end && index < node.items.size()) {
      return &node.items[index];
    }
    return set_error(assignment, "'" + segment + "' is no index into a list of " +
                                     std::to_string(node.items.size()) + " (they start at 0)");
  }
  if (node.kind == YamlNode::Kind::kScalar) {
    return set_error(assignment, "'" + segment + "' lies below a value, not below a map");
  }
  if (YamlNode* found = node.find(segment)) return found;
  node.entries.push_back({segment, place, {}});
  return &node.entries.back().value;
}

void replace_places(YamlNode& node, const Place& place) {
  node.place = place;
  for (YamlNode& item : node.items) replace_places(item, place);
  for (YamlEntry& entry : node.entries) {
    entry.place = place;
    replace_places(entry.value, place);
  }
}

Result<YamlNode> parse_value(std::string_view text, const Place& place) {
  YamlNode value;
  if (text.find_first_not_of(" \t") != std::string_view::npos) {
    GR_ASSIGN(value, parse_yaml(text, place.file));
  }
  replace_places(value, place);
  return value;
}

// Words that this program takes as text and other readers of YAML may not.
constexpr const char* kOtherMeaning[] = {"y",    "n",     "yes",  "no",  "on",  "off",
                                         "true", "false", "null", "nan", "inf", "infinity"};

// A word that every reader of YAML takes as that text, without quotes.
bool is_plain_word(std::string_view text) {
  const auto letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  if (text.empty() || text.size() > 200 || !(letter(text[0]) || text[0] == '_')) return false;
  std::string small;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!letter(c) && !digit && c != '_' && c != '.' && c != '/' && c != '-') return false;
    small += letter(c) ? static_cast<char>(c | 0x20) : c;
  }
  return std::find(std::begin(kOtherMeaning), std::end(kOtherMeaning), small) ==
         std::end(kOtherMeaning);
}

// As a double-quoted scalar; what ${NAME} means in it is the caller's affair.
std::string in_quotes(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

// Nothing is expanded in keys.
std::string key_text(std::string_view text) {
  return is_plain_word(text) ? std::string(text) : in_quotes(text);
}

std::string word_text(std::string_view text) {
  return is_plain_word(text) ? std::string(text) : yaml_quoted(text);
}

// A plain scalar stays plain only where that cannot change its meaning.
std::string scalar_text(const YamlNode& node) {
  const bool number_or_flag = node.plain && (read_bool(node) || read_float(node));
  return number_or_flag ? node.text : word_text(node.text);
}

// "[1, 2.5, a]": lists without maps or lists inside read best on one line.
bool is_flat(const YamlNode& list) {
  return std::all_of(list.items.begin(), list.items.end(),
                     [](const YamlNode& item) { return item.kind == YamlNode::Kind::kScalar; });
}

std::string flat_text(const YamlNode& list) {
  std::string out;
  for (const YamlNode& item : list.items) out += (out.empty() ? "" : ", ") + scalar_text(item);
  return "[" + out + "]";
}

void write(const YamlNode& node, int indent, std::string* out) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      *out += " null\n";
      return;
    case YamlNode::Kind::kScalar:
      *out += " " + scalar_text(node) + "\n";
      return;
    case YamlNode::Kind::kList:
      if (is_flat(node)) {
        *out += " " + flat_text(node) + "\n";
        return;
      }
      *out += "\n";
      for (const YamlNode& item : node.items) {
        *out += pad + "-";
        write(item, indent + 2, out);
      }
      return;
    case YamlNode::Kind::kMap:
      *out += node.entries.empty() ? " {}\n" : "\n";
      for (const YamlEntry& entry : node.entries) {
        *out += pad + key_text(entry.key) + ":";
        write(entry.value, indent + 2, out);
      }
      return;
  }
}

}  // namespace

Status apply_set(YamlNode& root, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return set_error(assignment, "wanted KEY=VALUE, such as optimizer.lr=1e-3");
  }
  const std::string_view path = assignment.substr(0, equals);
  const Place place{"--set " + std::string(assignment), 0, 0};
  GR_ASSIGN(YamlNode value, parse_value(assignment.substr(equals + 1), place));
  YamlNode* node = &root;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string segment(path.substr(begin, end - begin));
    if (segment.empty()) return set_error(assignment, "an empty word in the key");
    GR_ASSIGN(node, step_into(*node, segment, place, assignment));
    begin = end + 1;
  }
  *node = std::move(value);
  return {};
}

std::string yaml_quoted(std::string_view text) {
  std::string out = in_quotes(text);
  // Reading it back must not expand what came out of an expansion.
  for (size_t at = out.find("${"); at != std::string::npos; at = out.find("${", at + 3)) {
    out.insert(at, "$");
  }
  return out;
}

std::string to_yaml(const YamlNode& root) {
  std::string out = "---";
  write(root, 0, &out);
  return out;
}

}  // namespace gradrack
