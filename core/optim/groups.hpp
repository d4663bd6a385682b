// SPDX-License-Identifier: Apache-2.0
// Parameter groups: which rule of the YAML owns which parameter.
//
// Rules are tried in order and the first that matches wins; what no rule takes goes to two groups
// that are always there, `decay` (rank >= 2 and role weight or embedding) and `no_decay` (the rest,
// with weight_decay 0). Roles come from the model, never from a guess at names. Invariant: every
// parameter is in exactly one group, and a rule that takes nothing is an error.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "gradrack/graph.h"

namespace gradrack {

struct ParameterFacts {
  std::string name;
  std::string stage;
  std::vector<int64_t> dims;
  int32_t role = GR_ROLE_WEIGHT;
};

/// What one entry of `optimizer.groups` selects. An empty list or -1 selects everything.
struct GroupRule {
  std::vector<std::string> match;  // globs over the name: "*.bias", "blocks.0.*"
  std::string stage;               // glob over the stage
  int64_t rank = -1;
};

struct Group {
  std::string name;  // "group 0 (*.bias)", "decay", "no_decay"
  int rule = -1;     // index into the rules; -1: a default group
  bool no_decay = false;
  std::vector<size_t> members;  // indices of parameters, ascending
};

/// `*` any characters, `?` one character.
bool glob_match(std::string_view pattern, std::string_view text);

/// Routes parameters to groups; empty default groups are left out.
Result<std::vector<Group>> route_parameters(const std::vector<ParameterFacts>& parameters,
                                            const std::vector<GroupRule>& rules);

}  // namespace gradrack
