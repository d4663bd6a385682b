// SPDX-License-Identifier: Apache-2.0
// What an ONNX file says, as plain structs: models, graphs, nodes, attributes, tensors.
//
// First form of a file that was read; nothing in it was checked against anything yet. Invariant:
// raw bytes of tensors point into the file's content, which outlives the structs; everything else
// is owned, and takes memory in proportion to the bytes that hold it. Subgraphs are not read: a
// node that has one is noted and refused later by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradrack::onnx {

using Texts = std::vector<std::pair<std::string, std::string>>;  ///< keys and values

struct TensorMessage {
  std::string name;
  int32_t type = 0;  ///< TensorDataType
  std::vector<int64_t> dims;
  std::string_view raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  ///< int32_data, int64_data, uint64_data
  bool has_strings = false;
  bool is_external = false;
  Texts external;  ///< "location", "offset", "length"
};

struct AttributeMessage {
  std::string name;
  std::string reference;  ///< of a function's body: the attribute of the call
  int32_t type = 0;       ///< AttributeAttributeType
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::vector<TensorMessage> tensors;  ///< of TENSOR: one
  bool has_graph = false;
};

struct NodeMessage {
  std::string name;
  std::string domain;
  std::string op;
  std::vector<std::string> inputs;  ///< "": left out
  std::vector<std::string> outputs;
  std::vector<AttributeMessage> attributes;
};

struct DimMessage {
  bool has_value = false;
  int64_t value = 0;
  std::string symbol;  ///< "": nothing is said of it
};

struct ValueMessage {
  std::string name;
  std::string kind;  ///< "tensor"; else "sequence", "map", "optional", "sparse tensor", "no type"
  int32_t type = 0;  ///< TensorDataType
  bool has_shape = false;
  std::vector<DimMessage> dims;
};

struct GraphMessage {
  std::string name;
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> initializers;
  std::vector<ValueMessage> inputs;
  std::vector<ValueMessage> outputs;
  bool has_sparse = false;
};

struct OpsetMessage {
  std::string domain;
  int64_t version = 0;
};

struct FunctionMessage {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeMessage> defaults;
  std::vector<NodeMessage> nodes;
  std::vector<OpsetMessage> opsets;
};

struct ModelMessage {
  int64_t ir_version = 0;
  std::vector<OpsetMessage> opsets;
  std::string producer, producer_version, domain, documentation;
  int64_t model_version = 0;
  Texts metadata;
  GraphMessage graph;
  bool has_graph = false;
  std::vector<FunctionMessage> functions;
};

/// Reads a whole file. GR_INVALID_ARGUMENT: it is no ONNX file, or cut.
ModelMessage read_model_message(std::string_view bytes);

}  // namespace gradrack::onnx
