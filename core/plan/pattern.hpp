// SPDX-License-Identifier: Apache-2.0
// Pattern: an expression over nodes, as backends declare it (fusion.h), parsed.
//
// Text in, statements or a set out; knows neither graphs nor operators. Invariant: values are
// numbered as they appear; a statement stands behind those that make its inputs; all statements
// hang together.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// One node of a pattern. Values by number, or kAnything for `_`.
struct PatternNode {
  static constexpr int kAnything = -1;

  std::vector<std::string> ops;  // full names; any of them
  std::vector<int> inputs;
  std::vector<int> outputs;
  bool more_inputs = false;  // `...`
  bool more_outputs = false;
};

struct PatternText {
  std::vector<PatternNode> nodes;   // none: a set
  std::set<std::string> set;        // operators of a run
  std::vector<std::string> values;  // names, by number

  bool is_set() const { return nodes.empty(); }
};

/// GR_INVALID_ARGUMENT: what is wrong, and where in the text.
Result<PatternText> parse_pattern(const std::string& text);

}  // namespace gradrack
