// SPDX-License-Identifier: Apache-2.0
// Functions of a file, expanded where they are called: see model.hpp.
//
// Names inside a call get a prefix of their own; an attribute that refers to one of the call takes
// its value, or the function's default, or is left out. Invariant: every byte that is copied is
// counted before, and calls of calls that would take more than the file is worth are refused.
#include "gradrack/error.hpp"
#include "model.hpp"

namespace gradrack::onnx {

namespace {

constexpr int kMostDepth = 32;
constexpr size_t kMostNodes = 1'000'000;
/// What copies may take: small functions are called often, in small files too.
constexpr size_t kSmallBytes = size_t{64} << 20, kTimesOfFile = 8;

size_t bytes_of(const std::string& text) { return sizeof text + text.size(); }
size_t bytes_of(const TensorMessage& tensor);
size_t bytes_of(const AttributeMessage& attribute);

template <typename T>
size_t bytes_of(const std::vector<T>& parts) {
  if constexpr (std::is_arithmetic_v<T>) {
    return parts.size() * sizeof(T);
  } else {
    size_t bytes = 0;
    for (const T& part : parts) bytes += bytes_of(part);
    return bytes;
  }
}

/// `raw` is not copied, but each copy of the tensor may become a weight.
size_t bytes_of(const TensorMessage& tensor) {
  size_t bytes = sizeof tensor + tensor.name.size() + tensor.raw.size();
  bytes += bytes_of(tensor.dims) + bytes_of(tensor.floats) + bytes_of(tensor.doubles);
  for (const auto& [key, value] : tensor.external) bytes += bytes_of(key) + bytes_of(value);
  return bytes + bytes_of(tensor.ints);
}

size_t bytes_of(const AttributeMessage& attribute) {
  return sizeof attribute + attribute.name.size() + attribute.reference.size() +
         attribute.s.size() + bytes_of(attribute.ints) + bytes_of(attribute.floats) +
         bytes_of(attribute.strings) + bytes_of(attribute.tensors);
}

/// A function, and what a call of it copies.
struct Function {
  explicit Function(const FunctionMessage& from)
      : message(&from),
        opsets(opsets_of(from.opsets)),
        bytes(bytes_of(from.inputs) + bytes_of(from.outputs) + bytes_of(from.defaults)) {
    for (const NodeMessage& node : from.nodes) {
      bytes += sizeof(Node) + node.name.size() + node.domain.size() + node.op.size() +
               bytes_of(node.inputs) + bytes_of(node.outputs) + bytes_of(node.attributes);
      names += 1 + node.inputs.size() + node.outputs.size();
    }
  }

  const FunctionMessage* message;
  std::map<std::string, int64_t> opsets;
  size_t bytes;      // but for what the call adds
  size_t names = 0;  // that get a prefix
};

class Expansion {
 public:
  Expansion(const std::vector<FunctionMessage>& functions, size_t file_bytes)
      : most_bytes_(kSmallBytes + kTimesOfFile * file_bytes) {
    for (const FunctionMessage& function : functions) {
      const bool is_new =
          by_name_.emplace(key(function.domain, function.name), Function(function)).second;
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
    add_body(node, function->second, depth);
  }

  std::vector<Node> take() { return std::move(out_); }

 private:
  static std::string key(const std::string& domain, const std::string& name) {
    return (domain == "ai.onnx" ? "" : domain) + "\n" + name;
  }

  void spend(size_t bytes) {
    bytes_ += bytes;
    sdk::require(bytes_ <= most_bytes_, GR_OUT_OF_RANGE, "file", "functions expand to over ",
                 most_bytes_, " bytes, ", kSmallBytes, " and ", kTimesOfFile,
                 " times the file: export the model without functions");
  }

  void add_body(const Node& call, const Function& called, int depth) {
    const FunctionMessage& function = *called.message;
    sdk::require(call.inputs.size() <= function.inputs.size() &&
                     call.outputs.size() <= function.outputs.size(),
                 GR_INVALID_ARGUMENT, "file", call.text(), ": has ", call.inputs.size(),
                 " inputs and ", call.outputs.size(), " outputs, the function ",
                 function.inputs.size(), " and ", function.outputs.size());
    const std::string prefix = sdk::text(call.name.empty() ? call.op : call.name, "#", calls_, "/");
    spend(called.bytes + called.names * prefix.size());
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
    const Values values = values_of(call, function);
    for (Node& node : nodes_of(function.nodes, called.opsets)) {
      node.name = prefix + node.name;
      for (std::string& input : node.inputs) rename(input);
      for (std::string& output : node.outputs) rename(output);
      resolve(values, &node);
      add(std::move(node), depth + 1);
    }
  }

  /// What a call's attributes are, by name; its own go before the function's.
  using Values = std::map<std::string_view, const AttributeMessage*>;
  static Values values_of(const Node& call, const FunctionMessage& function) {
    Values values;
    for (const AttributeMessage& each : call.attributes) values.emplace(each.name, &each);
    for (const AttributeMessage& each : function.defaults) values.emplace(each.name, &each);
    return values;
  }

  void resolve(const Values& values, Node* node) {
    std::vector<AttributeMessage> resolved;
    for (AttributeMessage& attribute : node->attributes) {
      if (attribute.reference.empty()) {
        resolved.push_back(std::move(attribute));
        continue;
      }
      const auto value = values.find(attribute.reference);
      if (value == values.end()) continue;
      spend(bytes_of(*value->second));
      resolved.push_back(*value->second);
      resolved.back().name = attribute.name;
    }
    node->attributes = std::move(resolved);
  }

  std::map<std::string, Function> by_name_;
  std::vector<Node> out_;
  size_t calls_ = 0;
  size_t bytes_ = 0, most_bytes_;
};

}  // namespace

std::vector<Node> expand_functions(std::vector<Node> nodes,
                                   const std::vector<FunctionMessage>& functions,
                                   size_t file_bytes) {
  if (functions.empty()) return nodes;
  Expansion expansion(functions, file_bytes);
  for (Node& node : nodes) expansion.add(std::move(node), 0);
  return expansion.take();
}

}  // namespace gradrack::onnx
