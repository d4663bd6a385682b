// SPDX-License-Identifier: Apache-2.0
// Facts: see facts.hpp.
#include "facts.hpp"

#include "gradrack/error.hpp"

namespace gradrack::onnx {

namespace {

const char* role_text(Role role) {
  switch (role) {
    case Role::kUnused:
      return "unused";
    case Role::kConstant:
      return "constant";
    case Role::kParameter:
      return "trained";
    case Role::kBuffer:
      return "kept";
    default:
      return "kept, with an adapter";
  }
}

std::string dims_of(const ValueMessage& value) {
  std::string text = type_name(value.type) + " [";
  for (size_t k = 0; k < value.dims.size(); ++k) {
    const DimMessage& dim = value.dims[k];
    text += k > 0 ? ", " : "";
    text += dim.has_value ? std::to_string(dim.value) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text + "]";
}

}  // namespace

std::vector<Fact> facts_of(const Model& model, const Roles& roles) {
  std::vector<Fact> facts = {{"file", "name", model.name},
                             {"file", "ir_version", std::to_string(model.ir_version)},
                             {"file", "producer", model.producer},
                             {"file", "producer_version", model.producer_version},
                             {"file", "domain", model.domain},
                             {"file", "model_version", std::to_string(model.model_version)},
                             {"file", "documentation", model.documentation}};
  for (const auto& [domain, version] : model.opsets) {
    facts.push_back(
        {"file", "opset " + (domain.empty() ? "ai.onnx" : domain), std::to_string(version)});
  }
  for (const auto& [key, value] : model.metadata) facts.push_back({"metadata", key, value});
  for (const ValueMessage& input : model.inputs) {
    facts.push_back({"input", input.name, dims_of(input)});
  }
  for (const ValueMessage& input : model.overridable) {
    if (model.ir_version >= 4) {
      facts.push_back({"note", "input " + input.name,
                       "has a value in the file that a caller may replace; here it is a tensor"});
    }
  }
  for (const ValueMessage& output : model.outputs) {
    facts.push_back({"output", output.name, dims_of(output)});
  }
  std::map<std::string, size_t> operators;
  for (const Node& node : model.nodes) ++operators[node.full_op()];
  for (const auto& [op, count] : operators) {
    facts.push_back({"operator", op, std::to_string(count)});
  }
  for (const std::string& name : model.tensor_names) {
    const Tensor& tensor = model.tensors.at(name);
    facts.push_back({"weight", name,
                     sdk::text(type_name(tensor.type()), " ", dims_text(tensor.dims()), ", ",
                               role_text(roles.of.at(name)))});
  }
  if (roles.loss_before_softmax) {
    facts.push_back(
        {"note", "loss",
         "reads '" + roles.loss_value + "', what the last Softmax turns into probabilities"});
  }
  return facts;
}

}  // namespace gradrack::onnx
