// SPDX-License-Identifier: Apache-2.0
// Rules of operators whose forms the host keeps apart: Pad, Resize and Upsample, the losses with
// weights, recurrent cells and EyeLike. See rules.hpp.
#include <algorithm>

#include "rules.hpp"

namespace gradrack::onnx {

namespace {

/// The host's Pad takes a constant and pads of at least 0; gradrack.PadMode the other forms.
void pad(NodeImport& n) {
  const std::string mode = n.attr("mode", "constant");
  std::vector<Value> inputs = n.inputs();
  std::vector<int64_t> pads;
  if (n.version() >= 11) {
    if (const Tensor* const known = n.known(1)) pads = known->ints();
  } else {
    pads = n.attr_ints("pads");
    const Value value = n.g().scalar(n.attr("value", 0.0), n.type(n.in(0)).dtype);
    inputs = {n.in(0), ints_value(n.g(), pads), value};
  }
  if (inputs.size() > 2 && n.has(2) && n.type(inputs[2]).rank > 0) {
    inputs[2] = n.g().reshape(inputs[2], {});
  }
  const bool grows = std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p >= 0; });
  const bool plain = mode == "constant" && grows;
  n.emit(plain ? "Pad" : "gradrack.PadMode", inputs, {{"mode", mode.c_str()}});
}

/// Scales as known numbers; empty where the input is left out or holds none.
std::vector<double> known_reals(NodeImport& n, size_t k) {
  if (!n.has(k)) return {};
  const Tensor* const tensor = n.known(k);
  if (tensor == nullptr) {
    n.refuse("input ", k, " '", n.node().inputs[k], "' must be known when the file is read");
  }
  return tensor->reals();
}

void emit_resize(NodeImport& n, const std::vector<double>& scales, std::vector<sdk::Attr> attrs) {
  attrs.emplace_back("scales", scales);
  n.emit("Resize", {n.in(0)}, attrs);
}

void resize(NodeImport& n) {
  if (n.version() < 11) {
    return emit_resize(n, known_reals(n, 1),
                       {{"mode", n.attr("mode", "nearest").c_str()},
                        {"coordinate_transformation_mode", "asymmetric"},
                        {"nearest_mode", "floor"}});
  }
  std::vector<sdk::Attr> attrs = n.attrs();
  const std::vector<double> roi = known_reals(n, 1), scales = known_reals(n, 2);
  if (!roi.empty()) attrs.emplace_back("roi", roi);
  if (!scales.empty()) return emit_resize(n, scales, std::move(attrs));
  n.require(n.has(3), "has neither scales nor sizes");
  n.emit("Resize", {n.in(0), n.in(3)}, attrs);
}

void upsample(NodeImport& n) {
  std::vector<double> scales;
  if (n.version() >= 9) {
    scales = known_reals(n, 1);
  } else {
    const AttributeMessage* const given = n.node().find("scales");
    n.require(given != nullptr, "has no scales");
    scales.assign(given->floats.begin(), given->floats.end());
  }
  std::string mode = n.attr("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  emit_resize(n, scales,
              {{"mode", mode.c_str()},
               {"coordinate_transformation_mode", "asymmetric"},
               {"nearest_mode", "floor"}});
}

/// With weights or log_prob the loss is what ONNX defines it as: LogSoftmax, then the likelihood.
void cross_entropy(NodeImport& n) {
  if (!n.has(2) && !n.wants(1)) {
    return n.emit("SoftmaxCrossEntropyLoss", {n.in(0), n.in(1)}, n.attrs());
  }
  const Value logs = n.g().node("LogSoftmax", {n.in(0)}, {{"axis", 1}});
  std::vector<Value> inputs{logs, n.in(1)};
  if (n.has(2)) inputs.push_back(n.in(2));
  n.out(0, n.g().node("NegativeLogLikelihoodLoss", inputs, n.attrs()));
  n.out(1, logs);
}

/// `activations` is a list of texts in the file and one text with spaces in the host's graph.
void recurrent(NodeImport& n) {
  std::vector<sdk::Attr> attrs = n.attrs({"activations", "output_sequence"});
  std::string names;
  if (const AttributeMessage* const given = n.node().find("activations")) {
    for (const auto& name : given->strings) names += std::string(name) + " ";
  }
  attrs.emplace_back("activations", names.c_str());
  std::vector<Value> inputs = n.inputs();
  const auto outputs = static_cast<uint32_t>(n.output_count());
  const auto made = n.g().nodes(n.node().op.c_str(), inputs, attrs, outputs);
  for (uint32_t k = 0; k < outputs; ++k) {
    if (n.wants(k)) n.out(k, made[k]);
  }
}

void eye_like(NodeImport& n) {
  std::vector<sdk::Attr> attrs = n.attrs({"dtype"});
  if (n.has_attr("dtype")) {
    const auto type = static_cast<int32_t>(n.attr("dtype", int64_t{0}));
    attrs.emplace_back("dtype", int64_t{host_dtype(type, "its result")});
  }
  n.emit("EyeLike", n.inputs(), attrs);
}

constexpr RuleEntry kRules[] = {
    {"Pad", pad},           {"Resize", resize},
    {"Upsample", upsample}, {"SoftmaxCrossEntropyLoss", cross_entropy},
    {"RNN", recurrent},     {"GRU", recurrent},
    {"LSTM", recurrent},    {"EyeLike", eye_like},
};

}  // namespace

std::span<const RuleEntry> form_rules() { return kRules; }

}  // namespace gradrack::onnx
