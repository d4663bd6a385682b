// SPDX-License-Identifier: Apache-2.0
// Model: an ONNX file, checked and flat: its functions expanded, its names resolved.
//
// Made from messages, read by the importer. Invariant: every input of a node is an input of the
// model, a tensor, or an output of an earlier node; names are unique; each node knows the version
// of its operator set. It does not judge operators.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor.hpp"

namespace gradrack::onnx {

struct Node {
  std::string name;
  std::string domain;
  std::string op;
  int64_t version = 0;  ///< of the domain's operators; 0: the file does not say
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<AttributeMessage> attributes;

  const AttributeMessage* find(std::string_view attribute) const;
  std::string full_op() const { return domain.empty() ? op : domain + "." + op; }
  /// "node 'conv1' (Conv, opset 13)", for messages.
  std::string text() const;
};

struct Model {
  std::string path;
  std::string name;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  ///< by domain; ONNX's own is ""
  std::string producer, producer_version, domain, documentation;
  int64_t model_version = 0;
  Texts metadata;
  std::vector<ValueMessage> inputs;       ///< those that no tensor gives
  std::vector<ValueMessage> overridable;  ///< inputs that a tensor gives too
  std::vector<ValueMessage> outputs;
  std::vector<std::string> tensor_names;  ///< in the file's order
  std::map<std::string, Tensor, std::less<>> tensors;
  std::vector<Node> nodes;
  std::shared_ptr<FileBytes> files;  ///< what tensors point into
};

inline constexpr int64_t kOldestIr = 3, kOldestOpset = 7;
inline constexpr int64_t kNewestIr = 14, kNewestOpset = 28;

/// Reads and checks a file. Errors say what is wrong in which tensor or node: GR_NOT_FOUND, GR_IO;
/// GR_INVALID_ARGUMENT: no whole ONNX file, or one that breaks its own rules; GR_VERSION: an IR or
/// operator set outside what is read; GR_UNSUPPORTED: sparse tensors, sequences, strings. [main]
Model load_model(const std::string& path, const char* option);

/// The calls of the file's functions replaced by what they hold, names made unique. Bounded in
/// depth, in number, and in bytes by those of the file: GR_OUT_OF_RANGE.
std::vector<Node> expand_functions(std::vector<Node> nodes,
                                   const std::vector<FunctionMessage>& functions,
                                   size_t file_bytes);

/// Nodes of a message with the versions that `opsets` give their domains.
std::vector<Node> nodes_of(std::vector<NodeMessage> messages,
                           const std::map<std::string, int64_t>& opsets);
std::map<std::string, int64_t> opsets_of(const std::vector<OpsetMessage>& messages);

}  // namespace gradrack::onnx
