// SPDX-License-Identifier: Apache-2.0
// Functions of a file, expanded where they are called: see model.hpp.
//
// Names inside a call get a prefix of their own; an attribute that refers to one of the call takes
// its value, or the function's default, or is left out.
#include "gradrack/error.hpp"
#include "model.hpp"

namespace gradrack::onnx {

namespace {

constexpr int kMostDepth = 32;
constexpr size_t kMostNodes = 1'000'000;

class Expansion {
 public:
  explicit Expansion(const std::vector<FunctionMessage>& functions) {
    for (const FunctionMessage& function : functions) {
      const bool is_new = by_name_.emplace(key(function.domain, function.name), &function).second;
      sdk::require(is_new, GR_UNSUPPORTED, "file", "function '", function.domain, ".",
                   function.name, "' is there twice: overloads are not told apart");
    }
  }

  void add(Node node, int depth) {
    const auto function = by_name_.find(key(node.domain, node.op));
    if (function == by_name_.end()) {
      sdk::require(out_.size() < kMostNodes, GR_OUT_OF_RANGE, "file", "functions expand to over ",
                   kMostNodes, " nodes");
      out_.push_back(std::move(node));
      return;
    }
    sdk::require(depth < kMostDepth && ++calls_ < kMostNodes, GR_OUT_OF_RANGE, "file", node.text(),
                 ": functions call each other over ", kMostDepth, " deep, or without end");
    add_body(node, *function->second, depth);
  }

  std::vector<Node> take() { return std::move(out_); }

 private:
  static std::string key(const std::string& domain, const std::string& name) {
    return (domain == "ai.onnx" ? "" : domain) + "\n" + name;
  }

  void add_body(const Node& call, const FunctionMessage& function, int depth) {
    sdk::require(call.inputs.size() <= function.inputs.size() &&
                     call.outputs.size() <= function.outputs.size(),
                 GR_INVALID_ARGUMENT, "file", call.text(), ": has ", call.inputs.size(),
                 " inputs and ", call.outputs.size(), " outputs, the function ",
                 function.inputs.size(), " and ", function.outputs.size());
    const std::string prefix = sdk::text(call.name.empty() ? call.op : call.name, "#", calls_, "/");
    std::map<std::string, std::string> names;
    for (size_t k = 0; k < function.inputs.size(); ++k) {
      names[function.inputs[k]] = k < call.inputs.size() ? call.inputs[k] : "";
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (!call.outputs[k].empty()) names[function.outputs[k]] = call.outputs[k];
    }
    const auto rename = [&](std::string& name) {
      const auto known = names.find(name);
      if (!name.empty()) name = known != names.end() ? known->second : prefix + name;
    };
    for (Node node : nodes_of(function.nodes, opsets_of(function.opsets))) {
      node.name = prefix + node.name;
      for (std::string& input : node.inputs) rename(input);
      for (std::string& output : node.outputs) rename(output);
      resolve(call, function, &node);
      add(std::move(node), depth + 1);
    }
  }

  static void resolve(const Node& call, const FunctionMessage& function, Node* node) {
    std::vector<AttributeMessage> resolved;
    for (AttributeMessage& attribute : node->attributes) {
      if (attribute.reference.empty()) {
        resolved.push_back(std::move(attribute));
        continue;
      }
      const AttributeMessage* value = call.find(attribute.reference);
      for (const AttributeMessage& each : function.defaults) {
        if (value == nullptr && each.name == attribute.reference) value = &each;
      }
      if (value == nullptr) continue;
      resolved.push_back(*value);
      resolved.back().name = attribute.name;
    }
    node->attributes = std::move(resolved);
  }

  std::map<std::string, const FunctionMessage*> by_name_;
  std::vector<Node> out_;
  size_t calls_ = 0;
};

}  // namespace

std::vector<Node> expand_functions(std::vector<Node> nodes,
                                   const std::vector<FunctionMessage>& functions) {
  if (functions.empty()) return nodes;
  Expansion expansion(functions);
  for (Node& node : nodes) expansion.add(std::move(node), 0);
  return expansion.take();
}

}  // namespace gradrack::onnx
