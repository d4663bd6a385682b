// SPDX-License-Identifier: Apache-2.0
// Parameter groups: see groups.hpp.
#include "core/optim/groups.hpp"

#include <fmt/format.h>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

bool matches(const GroupRule& rule, const ParameterFacts& parameter) {
  if (rule.rank >= 0 && rule.rank != static_cast<int64_t>(parameter.dims.size())) return false;
  if (!rule.stage.empty() && !glob_match(rule.stage, parameter.stage)) return false;
  if (rule.match.empty()) return true;
  for (const std::string& pattern : rule.match) {
    if (glob_match(pattern, parameter.name)) return true;
  }
  return false;
}

bool decays(const ParameterFacts& parameter) {
  return parameter.dims.size() >= 2 &&
         (parameter.role == GR_ROLE_WEIGHT || parameter.role == GR_ROLE_EMBEDDING);
}

std::string rule_text(const GroupRule& rule) {
  std::vector<std::string> parts = rule.match;
  if (rule.rank >= 0) parts.push_back(fmt::format("rank {}", rule.rank));
  if (!rule.stage.empty()) parts.push_back("stage " + rule.stage);
  return parts.empty() ? "everything" : join(parts);
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  // Greedy with one point to come back to: linear for patterns that people write.
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<Group>> route_parameters(const std::vector<ParameterFacts>& parameters,
                                            const std::vector<GroupRule>& rules) {
  std::vector<Group> groups(rules.size() + 2);
  for (size_t r = 0; r < rules.size(); ++r) {
    groups[r].name = fmt::format("group {} ({})", r, rule_text(rules[r]));
    groups[r].rule = static_cast<int>(r);
  }
  Group& decay = groups[rules.size()];
  Group& no_decay = groups[rules.size() + 1];
  decay.name = "decay";
  no_decay.name = "no_decay";
  no_decay.no_decay = true;
  for (size_t k = 0; k < parameters.size(); ++k) {
    size_t r = 0;
    while (r < rules.size() && !matches(rules[r], parameters[k])) ++r;
    Group& group = r < rules.size() ? groups[r] : decays(parameters[k]) ? decay : no_decay;
    group.members.push_back(k);
  }
  std::vector<std::string> names;
  for (const ParameterFacts& parameter : parameters) names.push_back(parameter.name);
  std::vector<Group> used;
  for (Group& group : groups) {
    if (group.members.empty() && group.rule >= 0) {
      const GroupRule& rule = rules[static_cast<size_t>(group.rule)];
      const std::string near = rule.match.empty() ? "" : did_you_mean(rule.match.front(), names);
      return invalid_argument(fmt::format(
          "optimizer.groups[{}] ({}) matches no parameter, or earlier rules took all it matches{}",
          group.rule, rule_text(rule), near));
    }
    if (!group.members.empty()) used.push_back(std::move(group));
  }
  return used;
}

}  // namespace gradrack
