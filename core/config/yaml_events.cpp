// SPDX-License-Identifier: Apache-2.0
// Tree building: see yaml_events.hpp.
#include "core/config/yaml_events.hpp"

#include <cstdlib>

namespace gradrack {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 100000;
// YAML reads a key of at most 1024 characters, and one byte may be written as four.
constexpr size_t kMaxKeyBytes = 200;

size_t tree_size(const YamlNode& node) {
  size_t size = 1;
  for (const YamlNode& item : node.items) size += tree_size(item);
  for (const YamlEntry& entry : node.entries) size += tree_size(entry.value);
  return size;
}

}  // namespace

Place YamlTreeBuilder::at(const YAML::Mark& mark) const {
  return {name_, mark.line + 1, mark.column + 1};
}

void YamlTreeBuilder::fail(const Place& place, const std::string& message) const {
  throw YamlError{place, message};
}

bool YamlTreeBuilder::wants_key() const {
  return !open_.empty() && open_.back().node.kind == YamlNode::Kind::kMap && !open_.back().has_key;
}

std::string YamlTreeBuilder::path_to(const std::string& key) const {
  std::string path;
  for (size_t k = 0; k + 1 < open_.size(); ++k) {
    const Frame& frame = open_[k];
    path += frame.node.kind == YamlNode::Kind::kMap ? frame.key
                                                    : std::to_string(frame.node.items.size());
    path += '.';
  }
  return path + key;
}

void YamlTreeBuilder::count_nodes(size_t count, const Place& place) {
  nodes_ += count;
  if (nodes_ > kMaxNodes) {
    fail(place, "more than " + std::to_string(kMaxNodes) + " values (aliases counted as copies)");
  }
}

void YamlTreeBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (documents_++ > 0) {
    fail(at(mark), "a second document starts here; a run file holds one: remove this '---'");
  }
}

void YamlTreeBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  YamlNode node;
  node.place = at(mark);
  add(std::move(node), anchor);
}

void YamlTreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) fail(at(mark), "an alias that contains itself");
  count_nodes(tree_size(found->second), at(mark));
  add(found->second, 0);
}

void YamlTreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag,
                               YAML::anchor_t anchor, const std::string& value) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.place = at(mark);
  node.plain = tag.empty() || tag == "?";
  if (!node.plain && tag != "!" && tag != "tag:yaml.org,2002:str") {
    fail(node.place, "tag '" + tag + "' is not supported: write the value without it");
  }
  if (wants_key()) {
    node.text = value;
  } else {
    std::string error;
    if (!expand_variables(value, &node.text, &error)) fail(node.place, error);
    // ${NAME:-} of an unset or empty variable: nothing stands there.
    if (node.plain && node.text.empty()) node.kind = YamlNode::Kind::kNull;
  }
  add(std::move(node), anchor);
}

void YamlTreeBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                                      YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  open(YamlNode::Kind::kList, mark, tag, anchor);
}

void YamlTreeBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag,
                                 YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  open(YamlNode::Kind::kMap, mark, tag, anchor);
}

void YamlTreeBuilder::open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                           YAML::anchor_t anchor) {
  Frame frame;
  frame.node.kind = kind;
  frame.node.place = at(mark);
  frame.anchor = anchor;
  if (wants_key()) fail(frame.node.place, "a list or map cannot be a key");
  if (open_.size() >= kMaxDepth) {
    fail(frame.node.place, "nested more than " + std::to_string(kMaxDepth) + " levels deep");
  }
  if (!tag.empty() && tag != "?" && tag != "!") {
    fail(frame.node.place, "tag '" + tag + "' is not supported: write the value without it");
  }
  open_.push_back(std::move(frame));
}

void YamlTreeBuilder::close() {
  Frame frame = std::move(open_.back());
  open_.pop_back();
  for (const YamlNode& source : frame.merges) merge_into(frame, source);
  add(std::move(frame.node), frame.anchor);
}

// Own keys win over merged ones, and an earlier source over a later one (yaml.org/type/merge).
void YamlTreeBuilder::merge_into(Frame& frame, const YamlNode& source) {
  if (source.kind != YamlNode::Kind::kMap) {
    fail(source.place, "merge key '<<' wants a map or a list of maps");
  }
  for (const YamlEntry& entry : source.entries) {
    if (frame.node.find(entry.key) == nullptr) frame.node.entries.push_back(entry);
  }
}

void YamlTreeBuilder::take_key(const YamlNode& node) {
  Frame& frame = open_.back();
  if (node.kind != YamlNode::Kind::kScalar) fail(node.place, "a key without text");
  if (node.text.size() > kMaxKeyBytes) {
    fail(node.place, "a key of " + std::to_string(node.text.size()) + " bytes, wanted at most " +
                         std::to_string(kMaxKeyBytes));
  }
  frame.merge = node.plain && node.text == "<<";
  for (const YamlEntry& entry : frame.node.entries) {
    if (entry.key == node.text) {
      fail(node.place, "'" + path_to(node.text) + "' is given twice: here and on line " +
                           std::to_string(entry.place.line) + "; remove one");
    }
  }
  frame.key = node.text;
  frame.key_place = node.place;
  frame.has_key = true;
}

void YamlTreeBuilder::add(YamlNode node, YAML::anchor_t anchor) {
  count_nodes(1, node.place);
  if (anchor != 0) anchors_[anchor] = node;
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  if (wants_key()) {
    take_key(node);
    return;
  }
  Frame& frame = open_.back();
  if (frame.node.kind == YamlNode::Kind::kList) {
    frame.node.items.push_back(std::move(node));
    return;
  }
  frame.has_key = false;
  if (!frame.merge) {
    frame.node.entries.push_back({frame.key, frame.key_place, std::move(node)});
  } else if (!frame.merges.empty()) {
    fail(frame.key_place, "merge key '<<' is given twice: write one list, '<<: [*a, *b]'");
  } else if (node.kind == YamlNode::Kind::kList) {
    frame.merges = std::move(node.items);
  } else {
    frame.merges.push_back(std::move(node));
  }
}

bool expand_variables(std::string_view text, std::string* out, std::string* error) {
  out->clear();
  while (!text.empty()) {
    const size_t at = text.find("${");
    if (at == std::string_view::npos) break;
    if (at > 0 && text[at - 1] == '$') {  // "$${" is a plain "${"
      out->append(text.substr(0, at - 1)).append("${");
      text.remove_prefix(at + 2);
      continue;
    }
    out->append(text.substr(0, at));
    const size_t end = text.find('}', at);
    if (end == std::string_view::npos) {
      *error = "'${' without '}': write ${NAME}, ${NAME:-default}, or $${ for the two characters";
      return false;
    }
    const std::string_view inside = text.substr(at + 2, end - at - 2);
    const size_t dash = inside.find(":-");
    const std::string variable(inside.substr(0, dash));
    const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (value != nullptr && value[0] != '\0') {
      out->append(value);
    } else if (dash != std::string_view::npos) {
      out->append(inside.substr(dash + 2));
    } else {
      *error = "environment variable '" + variable + "' is not set: set it, or write ${" +
               variable + ":-default}";
      return false;
    }
    text.remove_prefix(end + 1);
  }
  out->append(text);
  return true;
}

}  // namespace gradrack
