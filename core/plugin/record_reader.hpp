// SPDX-License-Identifier: Apache-2.0
// Private to manifest.cpp and lock_file.cpp: the keys of one YAML map, each with its place in the
// error.
//
// Invariant: the first fault is kept and everything after it is passed over, so that a reader asks
// for all its keys in a row and looks at status() once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/yaml.hpp"

namespace gradrack {

class RecordReader {
 public:
  /// `path`: full key of the map, "" for the root. `node` must outlive this.
  RecordReader(const YamlNode& node, std::string path);

  /// Text under `key`; numbers and booleans count as the text that was written. A fault when it is
  /// not there (unless optional), empty, or no scalar.
  std::string text(const char* key, bool optional = false);
  uint32_t whole_number(const char* key);
  /// A list of texts; absent: empty.
  std::vector<std::string> texts(const char* key);
  /// The node under `key`, of that kind; nullptr with a fault otherwise.
  const YamlNode* node(const char* key, YamlNode::Kind kind);
  /// A fault at the key's place: "FILE:3:5: path.key: MESSAGE".
  void fault(const std::string& key, const std::string& message);
  /// Every key that nobody asked for is a fault.
  void refuse_unknown();

  const Status& status() const { return status_; }

 private:
  const YamlNode& map_;
  std::string path_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace gradrack
