// SPDX-License-Identifier: Apache-2.0
// Private to config/yaml*.cpp: builds the tree from yaml-cpp's events.
//
// Invariant: the builder throws YamlError only, and only inside the wall of parse_yaml.
#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <map>
#include <string>
#include <vector>

#include "core/config/yaml.hpp"

namespace gradrack {

/// Carried out of the parser to the wall in parse_yaml; never further.
struct YamlError {
  Place place;
  std::string message;
};

class YamlTreeBuilder : public YAML::EventHandler {
 public:
  explicit YamlTreeBuilder(std::string name) : name_(std::move(name)) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override;
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // maps: a key waits for its value
    bool merge = false;    // that key is a plain <<
    std::string key;
    Place key_place;
    std::vector<YamlNode> merges;
  };

  Place at(const YAML::Mark& mark) const;
  [[noreturn]] void fail(const Place& place, const std::string& message) const;
  /// True when the next node of the open map is a key.
  bool wants_key() const;
  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor);
  void close();
  void take_key(const YamlNode& node);
  void add(YamlNode node, YAML::anchor_t anchor);
  void merge_into(Frame& frame, const YamlNode& source);
  void count_nodes(size_t count, const Place& place);
  /// "optimizer.lr": keys of the open maps and indices of the open lists.
  std::string path_to(const std::string& key) const;

  std::string name_;
  YamlNode root_;
  int documents_ = 0;
  size_t nodes_ = 0;
  std::vector<Frame> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
};

/// Replaces ${NAME} and ${NAME:-default}; "$${" stands for "${". False, with the reason in `error`,
/// for an unset variable without default or a missing brace.
bool expand_variables(std::string_view text, std::string* out, std::string* error);

}  // namespace gradrack
