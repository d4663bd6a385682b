// SPDX-License-Identifier: Apache-2.0
// YAML text -> a tree of our own, in which every node knows its place.
//
// First step of config/. yaml-cpp is used as an event source behind one wall (its exceptions end
// here), because its own tree keeps repeated keys, merge keys and the difference between 1 and "1"
// badly. Invariant: a tree that was returned has unique keys, one document, bounded size and depth.
// It does not know which keys mean something (schema.hpp does).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// Where something stands: 1-based; line 0 means that the source has no lines ("--set a.b=1").
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  /// "run.yaml:3:5", or the file alone.
  std::string text() const;
};

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool plain = true;  ///< scalar without quotes: may be a number or a boolean
  std::string text;   ///< of a scalar, with ${NAME} already replaced
  Place place;
  std::vector<YamlNode> items;     ///< of a list
  std::vector<YamlEntry> entries;  ///< of a map, in written order

  /// The value under `key`, or nullptr.
  const YamlNode* find(std::string_view key) const;
  YamlNode* find(std::string_view key);
};

struct YamlEntry {
  std::string key;
  Place place;
  YamlNode value;
};

/// Parses one document. `name` stands in error messages. Merge keys (<<) are resolved, aliases are
/// copied, ${NAME:-default} is replaced in values. GR_INVALID_ARGUMENT says line and column for:
/// bad syntax, a repeated key, a second document, no content, more than 64 levels, 100,000 nodes or
/// 1 MiB, an unset variable without a default.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& name);

/// Reads and parses a file. GR_NOT_FOUND, GR_IO, or as parse_yaml.
Result<YamlNode> load_yaml(const std::string& path);

/// Applies "a.b=value" (command line --set): the value is YAML, missing maps are made, numbers
/// index lists, a value already there is replaced.
Status apply_set(YamlNode& root, std::string_view assignment);

/// The tree as YAML text that parses to the same tree (places aside).
std::string to_yaml(const YamlNode& root);

/// `text` as a double-quoted scalar that reads back to the same text.
std::string yaml_quoted(std::string_view text);

}  // namespace gradrack
