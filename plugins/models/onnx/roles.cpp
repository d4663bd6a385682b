// SPDX-License-Identifier: Apache-2.0
// Roles: see roles.hpp.
#include "roles.hpp"

#include <algorithm>

#include "gradrack/error.hpp"
#include "gradrack/graph.h"

namespace gradrack::onnx {

namespace {

/// Weights of fewer elements that are not trained are constants, so that folding sees them.
constexpr int64_t kSmall = 1024;

/// Inputs of an operator that are numbers about the work, not weights.
struct Setting {
  const char* op;
  size_t first, last;
};
constexpr Setting kSettings[] = {
    {"Clip", 1, 2},   {"Pad", 1, 3},     {"Resize", 1, 3},   {"Upsample", 1, 1}, {"Dropout", 1, 2},
    {"Pow", 1, 1},    {"OneHot", 1, 2},  {"Range", 0, 2},    {"Where", 0, 0},    {"Reshape", 1, 1},
    {"Expand", 1, 1}, {"TopK", 1, 1},    {"Slice", 1, 4},    {"Trilu", 1, 1},    {"Mod", 0, 1},
    {"Cast", 0, 0},   {"Greater", 0, 1}, {"Less", 0, 1},     {"Equal", 0, 1},    {"IsNaN", 0, 0},
    {"Tile", 1, 1},   {"CumSum", 1, 1},  {"GatherND", 1, 1}, {"LSTM", 4, 4},     {"GRU", 4, 4},
};

bool is_setting(const Node& node, size_t input) {
  for (const Setting& each : kSettings) {
    if (node.domain.empty() && node.op == each.op && input >= each.first && input <= each.last) {
      return true;
    }
  }
  return false;
}

bool is_statistic(const Node& node, size_t input) {
  return node.domain.empty() && node.op == "BatchNormalization" && input >= 3;
}

bool is_product(const Node& node) {
  const std::string& op = node.op;
  return op == "MatMul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose" ||
         op == "FusedMatMul";
}

class Settling {
 public:
  Settling(const Model& model, const Settings& settings) : model_(model), settings_(settings) {
    for (size_t k = 0; k < model.nodes.size(); ++k) {
      for (const std::string& output : model.nodes[k].outputs) maker_[output] = k;
    }
  }

  Roles settle() {
    choose_outputs();
    choose_loss();
    mark_needed();
    for (const std::string& name : model_.tensor_names) roles_.of[name] = role_of(name);
    check_globs();
    return std::move(roles_);
  }

 private:
  void choose_outputs() {
    std::vector<std::string> names;
    for (const ValueMessage& output : model_.outputs) names.push_back(output.name);
    for (const std::string& wanted : settings_.outputs) {
      sdk::require(std::find(names.begin(), names.end(), wanted) != names.end(),
                   GR_INVALID_ARGUMENT, "outputs", "the file has no output '", wanted, "'");
    }
    roles_.outputs = settings_.outputs.empty() ? names : settings_.outputs;
    sdk::require(!roles_.outputs.empty(), GR_INVALID_ARGUMENT, "file", model_.path,
                 ": has no outputs");
  }

  void choose_loss() {
    const std::string name =
        settings_.loss_output.empty() ? roles_.outputs[0] : settings_.loss_output;
    const auto maker = maker_.find(name);
    const bool there = maker != maker_.end() || settings_.loss_output.empty();
    sdk::require(there, GR_INVALID_ARGUMENT, "loss_output", "no node of ", model_.path, " makes '",
                 name, "'");
    roles_.loss_value = name;
    if (maker == maker_.end()) return;  // an output that is a tensor, or an input
    const Node& last = model_.nodes[maker->second];
    if (settings_.loss == Loss::kCrossEntropy && last.op == "Softmax" && last.domain.empty()) {
      const bool whole = !last.inputs.empty() && !last.inputs[0].empty();
      sdk::require(whole, GR_INVALID_ARGUMENT, "file", last.text(), ": has no input");
      roles_.loss_value = last.inputs[0];
      roles_.loss_before_softmax = true;
    }
  }

  void mark_needed() {
    roles_.needed.assign(model_.nodes.size(), false);
    std::set<std::string> wanted(roles_.outputs.begin(), roles_.outputs.end());
    wanted.insert(roles_.loss_value);
    for (size_t k = model_.nodes.size(); k-- > 0;) {
      const Node& node = model_.nodes[k];
      const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                      [&](const auto& name) { return wanted.count(name) > 0; });
      if (!needed) continue;
      roles_.needed[k] = true;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].empty()) continue;
        wanted.insert(node.inputs[i]);
        readers_[node.inputs[i]].emplace_back(k, i);
      }
    }
    roles_.inputs = wanted;
  }

  bool made_by_product(const std::string& name) const {
    const auto maker = maker_.find(name);
    return maker != maker_.end() && is_product(model_.nodes[maker->second]);
  }

  /// A single number is a weight only where it is added to a product, or an operator has a place
  /// for weights there; elsewhere it is part of a formula.
  bool is_weight_here(const Node& node, size_t input, const Tensor& tensor) const {
    if (is_setting(node, input)) return false;
    if (tensor.count() != 1) return true;
    static constexpr const char* kFormulas[] = {"Mul", "Div", "Sub", "Max", "Min", "Sum"};
    for (const char* op : kFormulas) {
      if (node.op == op) return false;
    }
    if (node.op != "Add") return true;
    return !tensor.dims().empty() && node.inputs.size() == 2 &&
           made_by_product(node.inputs[1 - input]);
  }

  Role role_of(const std::string& name) {
    const Tensor& tensor = model_.tensors.at(name);
    bool used = false, weight = false, statistic = false, adaptable = false;
    for (const auto& [k, i] : readers_[name]) {
      const Node& node = model_.nodes[k];
      used = true;
      statistic = statistic || is_statistic(node, i);
      weight = weight || is_weight_here(node, i, tensor);
      adaptable = adaptable || (i == 1 && (node.op == "MatMul" || node.op == "Gemm"));
      note_purpose(name, node, i, tensor);
    }
    if (!used) return roles_.inputs.count(name) > 0 ? Role::kConstant : Role::kUnused;
    if (!tensor.is_real()) return Role::kConstant;
    if (statistic) return Role::kBuffer;
    if (weight) weights_.push_back(name);
    const Role kept = tensor.count() > kSmall ? Role::kBuffer : Role::kConstant;
    if (!weight) return kept;
    if (matches_any(name, settings_.lora)) {
      sdk::require(adaptable && tensor.dims().size() == 2, GR_INVALID_ARGUMENT, "lora", "'", name,
                   "' is no matrix that a MatMul or Gemm multiplies by");
      return Role::kAdapted;
    }
    const bool trained = settings_.lora.empty() && matches_any(name, settings_.trainable) &&
                         !matches_any(name, settings_.frozen);
    return trained ? Role::kParameter : kept;
  }

  void note_purpose(const std::string& name, const Node& node, size_t input, const Tensor& tensor) {
    const std::string& op = node.op;
    int32_t purpose = tensor.dims().size() <= 1 ? GR_ROLE_BIAS : GR_ROLE_WEIGHT;
    if (op.find("Normalization") != std::string::npos) {
      purpose = input == 1 || (node.domain == "com.microsoft" && input == 2) ? GR_ROLE_NORM
                                                                             : GR_ROLE_BIAS;
    } else if (op == "Gather" && input == 0) {
      purpose = GR_ROLE_EMBEDDING;
    } else if (op == "Mul" && tensor.dims().size() <= 1) {
      purpose = GR_ROLE_NORM;
    }
    roles_.purpose.emplace(name, purpose);
  }

  void check_globs() const {
    require_matches("trainable", settings_.trainable, weights_);
    require_matches("frozen", settings_.frozen, weights_);
    require_matches("lora", settings_.lora, weights_);
  }

  const Model& model_;
  const Settings& settings_;
  std::map<std::string, size_t> maker_;
  std::map<std::string, std::vector<std::pair<size_t, size_t>>> readers_;  // node, input
  std::vector<std::string> weights_;
  Roles roles_;
};

}  // namespace

Roles settle_roles(const Model& model, const Settings& settings) {
  return Settling(model, settings).settle();
}

}  // namespace gradrack::onnx
