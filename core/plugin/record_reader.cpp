// SPDX-License-Identifier: Apache-2.0
// Keys of a map: see record_reader.hpp.
#include "core/plugin/record_reader.hpp"

#include <algorithm>
#include <charconv>

#include "core/base/text.hpp"

namespace gradrack {

RecordReader::RecordReader(const YamlNode& node, std::string path)
    : map_(node), path_(std::move(path)) {
  if (map_.kind == YamlNode::Kind::kMap) return;
  status_ = invalid_argument(map_.place.text() + ": " + (path_.empty() ? "the file" : path_) +
                             ": wanted a map of keys and values");
}

void RecordReader::fault(const std::string& key, const std::string& message) {
  if (!status_.ok()) return;
  const YamlNode* value = map_.find(key);
  const Place& place = value != nullptr ? value->place : map_.place;
  status_ = invalid_argument(place.text() + ": " + (path_.empty() ? key : path_ + "." + key) +
                             ": " + message);
}

const YamlNode* RecordReader::node(const char* key, YamlNode::Kind kind) {
  known_.push_back(key);
  if (!status_.ok()) return nullptr;
  const YamlNode* value = map_.find(key);
  if (value == nullptr) {
    fault(key, "missing");
  } else if (value->kind != kind) {
    fault(key, kind == YamlNode::Kind::kScalar ? "wanted a text"
               : kind == YamlNode::Kind::kList ? "wanted a list"
                                               : "wanted a map of keys and values");
    value = nullptr;
  }
  return value;
}

std::string RecordReader::text(const char* key, bool optional) {
  if (optional && status_.ok() && map_.find(key) == nullptr) {
    known_.push_back(key);
    return "";
  }
  const YamlNode* value = node(key, YamlNode::Kind::kScalar);
  if (value == nullptr) return "";
  if (value->text.empty() && !optional) fault(key, "is empty");
  return value->text;
}

uint32_t RecordReader::whole_number(const char* key) {
  const YamlNode* value = node(key, YamlNode::Kind::kScalar);
  uint32_t number = 0;
  if (value == nullptr) return number;
  const char* end = value->text.data() + value->text.size();
  const auto [stop, error] = std::from_chars(value->text.data(), end, number);
  if (error != std::errc() || stop != end || !value->plain) {
    fault(key, "got '" + value->text + "', wanted a whole number");
  }
  return number;
}

std::vector<std::string> RecordReader::texts(const char* key) {
  std::vector<std::string> all;
  known_.push_back(key);
  if (!status_.ok() || map_.find(key) == nullptr) return all;
  const YamlNode* list = node(key, YamlNode::Kind::kList);
  if (list == nullptr) return all;
  for (const YamlNode& item : list->items) {
    if (item.kind != YamlNode::Kind::kScalar) fault(key, "wanted a list of texts");
    all.push_back(item.text);
  }
  return all;
}

void RecordReader::refuse_unknown() {
  if (!status_.ok()) return;
  for (const YamlEntry& entry : map_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    status_ = invalid_argument(
        entry.place.text() + ": " + (path_.empty() ? entry.key : path_ + "." + entry.key) +
        ": unknown key" + did_you_mean(entry.key, known_) + "; known: " + join(known_));
    return;
  }
}

}  // namespace gradrack
