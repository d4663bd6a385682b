// SPDX-License-Identifier: Apache-2.0
// Rules of layers: BatchNormalization and Dropout in the form that is asked for, and what differs
// in older operator sets. See rules.hpp.
#include "rules.hpp"

namespace gradrack::onnx {

namespace {

bool says_training(NodeImport& n) {
  if (n.version() >= 14) return n.attr("training_mode", int64_t{0}) != 0;
  return n.output_count() > 1;
}

void batch_norm(NodeImport& n) {
  n.require(n.version() >= 9 || n.attr("spatial", int64_t{1}) != 0,
            "normalises each element by itself (spatial 0), which is not read");
  const std::vector<Value> inputs = n.inputs();
  const bool training = n.importer().forms().batch_norm || says_training(n);
  std::vector<sdk::Attr> attrs = n.attrs({"training_mode", "spatial", "momentum"});
  attrs.emplace_back("momentum", n.attr("momentum", 0.9));
  attrs.emplace_back("training_mode", training ? 1 : 0);
  const auto made = n.g().nodes("BatchNormalization", inputs, attrs, training ? 3 : 1);
  for (size_t k = 0; k < made.size(); ++k) n.out(k, made[k]);
  if (!n.importer().forms().batch_norm) return;
  n.importer().update(n.node().inputs[3], made[1]);
  n.importer().update(n.node().inputs[4], made[2]);
}

void dropout(NodeImport& n) {
  const bool by_input = n.version() >= 12;
  const double given = n.attr("ratio", 0.5);
  Value ratio = by_input && n.has(1) ? n.in(1) : n.g().scalar(given, GR_FLOAT64);
  const bool drops = n.importer().forms().training;
  if (!drops && !(by_input && n.has(2))) {
    n.out(0, n.in(0));
    if (n.wants(1)) n.emit("Dropout", {n.in(0), ratio, n.g().boolean(false)}, {});
    return;
  }
  n.emit("Dropout", {n.in(0), ratio, drops ? n.g().boolean(true) : n.in(2)}, {});
}

/// Scale and bias are per group before opset 21, per channel from there on.
void group_norm(NodeImport& n) {
  if (n.version() >= 21) return n.emit("GroupNormalization", n.inputs(), n.attrs());
  const int64_t groups = n.attr("num_groups", int64_t{0});
  const gr_type_t type = n.type(n.in(0));
  n.require(groups > 0 && type.rank >= 2 && type.dims[1].symbol == nullptr &&
                type.dims[1].size % groups == 0,
            "has ", groups, " groups, wanted a divisor of the channels");
  const int64_t each = type.dims[1].size / groups;
  const auto spread = [&](Value x) {
    const Value rows =
        n.g().node("Expand", {n.g().reshape(x, {groups, 1}), n.g().ints({groups, each})});
    return n.g().reshape(rows, {groups * each});
  };
  n.emit("GroupNormalization", {n.in(0), spread(n.in(1)), spread(n.in(2))},
         n.attrs({"stash_type"}));
}

void layer_norm(NodeImport& n) { n.emit(n.node().op.c_str(), n.inputs(), n.attrs({"stash_type"})); }

constexpr RuleEntry kRules[] = {
    {"BatchNormalization", batch_norm}, {"Dropout", dropout},
    {"GroupNormalization", group_norm}, {"LayerNormalization", layer_norm},
    {"RMSNormalization", layer_norm},
};

}  // namespace

std::span<const RuleEntry> network_rules() { return kRules; }

}  // namespace gradrack::onnx
