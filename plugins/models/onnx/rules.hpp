// SPDX-License-Identifier: Apache-2.0
// Rules: what an operator of the file means in the host's operators, where it is not the same.
//
// A rule turns one node into nodes of the newest operator set (attributes that became inputs, older
// defaults), or into several that say the same (operators of `com.microsoft`). Operators without a
// rule are passed on under their own name.
#pragma once

#include "importer.hpp"

namespace gradrack::onnx {

using Rule = void (*)(NodeImport& n);

/// The rule for that node's operator; null: there is none.
Rule find_rule(const Node& node);

/// GR_UNSUPPORTED for operators that are not trained here, with the reason: control flow,
/// sequences, texts, whole numbers that stand for reals, results whose shape depends on data.
void check_supported(const Node& node);

/// One entry of a table of rules.
struct RuleEntry {
  const char* op;  ///< "Clip", "com.microsoft.Gelu"
  Rule rule;
};

// By family.
std::span<const RuleEntry> shape_rules();
std::span<const RuleEntry> element_rules();
std::span<const RuleEntry> network_rules();
std::span<const RuleEntry> form_rules();
std::span<const RuleEntry> contrib_rules();
std::span<const RuleEntry> training_rules();

/// int64 [n] as a value.
Value ints_value(GraphBuilder& g, const std::vector<int64_t>& numbers);

}  // namespace gradrack::onnx
