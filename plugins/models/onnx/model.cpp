// SPDX-License-Identifier: Apache-2.0
// Loading a model: see model.hpp.
#include "model.hpp"

#include <set>

#include "fields.hpp"
#include "gradrack/error.hpp"
#include "gradrack/graph.h"

namespace gradrack::onnx {

namespace {

/// Of a tensor that a node fills: what no machine holds is a fault of the file.
constexpr int64_t kMostElements = int64_t{1} << 40;

template <typename... Parts>
void check(bool good, int32_t code, const Parts&... parts) {
  sdk::require(good, code, "file", parts...);
}

void check_versions(const Model& model) {
  check(model.ir_version >= kOldestIr && model.ir_version <= kNewestIr, GR_VERSION, model.path,
        ": IR version ", model.ir_version, ", wanted ", kOldestIr, " to ", kNewestIr,
        ": convert the file with the `onnx` package");
  const auto own = model.opsets.find("");
  const auto check_opset = [&](int64_t version, const std::string& who) {
    check(version != 0, GR_INVALID_ARGUMENT, model.path, ": ", who,
          "names no version of ONNX's operators");
    check(version >= kOldestOpset && version <= kNewestOpset, GR_VERSION, model.path, ": ", who,
          "operator set ", version, ", wanted ", kOldestOpset, " to ", kNewestOpset,
          ": convert the file with onnx.version_converter");
  };
  if (own != model.opsets.end()) check_opset(own->second, "");
  for (const Node& node : model.nodes) {  // functions have versions of their own
    if (node.domain.empty()) check_opset(node.version, node.text() + ": ");
  }
}

/// Tensors, and the inputs without those that a tensor gives.
void take_tensors(const GraphMessage& graph, Model* model) {
  for (const TensorMessage& message : graph.initializers) {
    check(!message.name.empty(), GR_INVALID_ARGUMENT, model->path, ": a tensor has no name");
    const bool is_new =
        model->tensors.emplace(message.name, read_tensor(message, *model->files)).second;
    check(is_new, GR_INVALID_ARGUMENT, model->path, ": tensor '", message.name, "' is there twice");
    model->tensor_names.push_back(message.name);
  }
  for (const ValueMessage& input : graph.inputs) {
    (model->tensors.count(input.name) > 0 ? model->overridable : model->inputs).push_back(input);
  }
}

/// The tensor that a node holds or fills without reading anything but tensors; false: it does not.
bool held_tensor(const Model& model, const Node& node, Tensor* out) {
  if (!node.domain.empty() || node.outputs.size() != 1 || node.outputs[0].empty()) return false;
  const AttributeMessage* const value = node.find("value");
  const bool has_value = value != nullptr && value->tensors.size() == 1;
  if (has_value && (value->tensors[0].has_strings || type_bits(value->tensors[0].type) == 0)) {
    return false;  // the importer says so, if the node is needed
  }
  if (node.op == "Constant" && has_value) {
    *out = read_tensor(value->tensors[0], *model.files);
    return true;
  }
  if (node.op != "ConstantOfShape" || node.inputs.size() != 1) return false;
  const auto shape = model.tensors.find(node.inputs[0]);
  if (shape == model.tensors.end() || !shape->second.is_integer()) return false;
  if (shape->second.count() > GR_MAX_RANK) return false;
  const std::vector<int64_t> dims = shape->second.ints();
  const int64_t count = element_count(dims);
  check(count >= 0 && count < kMostElements, GR_OUT_OF_RANGE, model.path, ": ", node.text(),
        " fills a tensor of dims ", dims_text(dims));
  Tensor one = Tensor::filled(TensorDataType::FLOAT, {1}, 0);
  if (has_value) one = read_tensor(value->tensors[0], *model.files);
  if (one.count() != 1 || !one.is_real()) return false;
  *out = Tensor::filled(one.type(), dims, one.reals()[0]);
  return true;
}

using Names = std::set<std::string, std::less<>>;

Names statistics_of(const Model& model) {
  Names names;
  for (const Node& node : model.nodes) {
    if (node.op != "BatchNormalization" || !node.domain.empty()) continue;
    for (size_t k = 3; k < node.inputs.size(); ++k) names.insert(node.inputs[k]);
  }
  return names;
}

/// Exporters write equal tensors once and name the others by Identity: a bias of zeros may stand
/// for a running mean. What is trained and what follows the data must not be one tensor.
bool parts_statistic(const Model& model, const Node& node, const Names& statistics, Tensor* out) {
  if (node.op != "Identity" || !node.domain.empty() || node.inputs.size() != 1) return false;
  const auto tensor = model.tensors.find(node.inputs[0]);
  if (tensor == model.tensors.end() || node.outputs.size() != 1) return false;
  if (statistics.count(node.inputs[0]) == statistics.count(node.outputs[0])) return false;
  *out = tensor->second;
  return true;
}

/// Exporters keep weights in nodes too: those become tensors like the others.
void hoist_tensors(Model* model) {
  const Names statistics = statistics_of(*model);
  std::vector<Node> rest;
  rest.reserve(model->nodes.size());
  for (Node& node : model->nodes) {
    Tensor tensor;
    const bool held =
        held_tensor(*model, node, &tensor) || parts_statistic(*model, node, statistics, &tensor);
    if (held && model->tensors.emplace(node.outputs[0], std::move(tensor)).second) {
      model->tensor_names.push_back(node.outputs[0]);
    } else {
      rest.push_back(std::move(node));
    }
  }
  model->nodes = std::move(rest);
}

/// What a later node may read; an output must be new.
void check_names(const Model& model) {
  std::set<std::string, std::less<>> known;
  for (const ValueMessage& input : model.inputs) {
    check(!input.name.empty() && known.insert(input.name).second, GR_INVALID_ARGUMENT, model.path,
          ": input '", input.name, "' is there twice or has no name");
  }
  for (const std::string& name : model.tensor_names) {
    check(known.insert(name).second, GR_INVALID_ARGUMENT, model.path, ": a node makes '", name,
          "', which is an input");
  }
  for (const Node& node : model.nodes) {
    for (const std::string& input : node.inputs) {
      check(input.empty() || known.count(input) > 0, GR_INVALID_ARGUMENT, model.path, ": ",
            node.text(), " reads '", input, "', which nothing before it makes");
    }
    for (const std::string& output : node.outputs) {
      check(output.empty() || known.insert(output).second, GR_INVALID_ARGUMENT, model.path, ": ",
            node.text(), " makes '", output, "', which is there already");
    }
  }
  for (const ValueMessage& output : model.outputs) {
    check(known.count(output.name) > 0, GR_INVALID_ARGUMENT, model.path, ": output '", output.name,
          "' is made by nothing");
  }
}

}  // namespace

const AttributeMessage* Node::find(std::string_view attribute) const {
  for (const AttributeMessage& each : attributes) {
    if (each.name == attribute) return &each;
  }
  return nullptr;
}

std::string Node::text() const {
  const std::string made = outputs.empty() ? "" : outputs[0];
  const std::string who = name.empty() ? "node that makes '" + made + "'" : "node '" + name + "'";
  return sdk::text(who, " (", full_op(), ", opset ", version, ")");
}

std::map<std::string, int64_t> opsets_of(const std::vector<OpsetMessage>& messages) {
  std::map<std::string, int64_t> opsets;
  for (const OpsetMessage& message : messages) {
    opsets[message.domain == "ai.onnx" ? "" : message.domain] = message.version;
  }
  return opsets;
}

std::vector<Node> nodes_of(std::vector<NodeMessage> messages,
                           const std::map<std::string, int64_t>& opsets) {
  std::vector<Node> nodes;
  nodes.reserve(messages.size());
  for (NodeMessage& message : messages) {
    const auto version = opsets.find(message.domain);
    nodes.push_back({std::move(message.name), std::move(message.domain), std::move(message.op),
                     version == opsets.end() ? 0 : version->second, std::move(message.inputs),
                     std::move(message.outputs), std::move(message.attributes)});
  }
  return nodes;
}

Model load_model(const std::string& path, const char* option) {
  Model model;
  model.path = path;
  model.files = std::make_shared<FileBytes>(path, option);
  ModelMessage message = read_model_message(model.files->main());
  check(message.has_graph, GR_INVALID_ARGUMENT, path,
        ": holds no graph: is it an ONNX file? An un-fetched Git LFS pointer is none");
  check(!message.graph.has_sparse, GR_UNSUPPORTED, path,
        ": holds sparse tensors, which are not read");
  model.name = message.graph.name;
  model.ir_version = message.ir_version;
  model.opsets = opsets_of(message.opsets);
  model.producer = std::move(message.producer);
  model.producer_version = std::move(message.producer_version);
  model.domain = std::move(message.domain);
  model.documentation = std::move(message.documentation);
  model.model_version = message.model_version;
  model.metadata = std::move(message.metadata);
  take_tensors(message.graph, &model);
  model.outputs = std::move(message.graph.outputs);
  model.nodes = expand_functions(nodes_of(std::move(message.graph.nodes), model.opsets),
                                 message.functions, model.files->main().size());
  check_versions(model);
  hoist_tensors(&model);
  check_names(model);
  return model;
}

}  // namespace gradrack::onnx
