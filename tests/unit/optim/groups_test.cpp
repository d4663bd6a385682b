// SPDX-License-Identifier: Apache-2.0
// Routing of parameters to groups: roles, order of rules, rules that take nothing.
#include "core/optim/groups.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

std::vector<ParameterFacts> gpt_like() {
  return {{"tok_emb.weight", "embed", {10, 4}, GR_ROLE_EMBEDDING},
          {"block.layer_norm.weight", "block", {4}, GR_ROLE_NORM},
          {"ln_f.weight", "head", {4}, GR_ROLE_NORM},
          {"proj.bias", "block", {4}, GR_ROLE_BIAS},
          {"proj.weight", "block", {4, 4}, GR_ROLE_WEIGHT}};
}

const Group* group_of(const std::vector<Group>& groups, size_t parameter) {
  const Group* found = nullptr;
  for (const Group& group : groups) {
    for (const size_t member : group.members) {
      if (member != parameter) continue;
      EXPECT_EQ(found, nullptr) << "in two groups";
      found = &group;
    }
  }
  return found;
}

TEST(Groups, OPT05_DecayGoesByRankAndRoleNotByName) {
  auto groups = route_parameters(gpt_like(), {});
  ASSERT_TRUE(groups.ok());
  for (const size_t norm_or_bias : {1, 2, 3})
    EXPECT_TRUE(group_of(*groups, norm_or_bias)->no_decay);
  for (const size_t matrix : {0, 4}) EXPECT_FALSE(group_of(*groups, matrix)->no_decay);
}

TEST(Groups, FirstMatchingRuleWins) {
  auto groups = route_parameters(gpt_like(), {{{"proj.*"}, "", -1}, {{}, "block", -1}});
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  EXPECT_EQ(group_of(*groups, 3)->rule, 0);
  EXPECT_EQ(group_of(*groups, 1)->rule, 1);
  EXPECT_EQ(group_of(*groups, 0)->rule, -1);
}

TEST(Groups, RuleThatTakesNothingIsAnErrorWithTheNearestName) {
  auto groups = route_parameters(gpt_like(), {{{"proj.wieght"}, "", -1}});
  ASSERT_FALSE(groups.ok());
  EXPECT_NE(groups.status().message().find("groups[0]"), std::string::npos);
  EXPECT_NE(groups.status().message().find("proj.weight"), std::string::npos);
}

TEST(Groups, RuleShadowedByAnEarlierOneIsAnError) {
  auto groups = route_parameters(gpt_like(), {{{"*"}, "", -1}, {{"proj.*"}, "", -1}});
  EXPECT_FALSE(groups.ok());
}

TEST(Groups, RankSelects) {
  auto groups = route_parameters(gpt_like(), {{{}, "", 1}});
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ((*groups)[0].members, (std::vector<size_t>{1, 2, 3}));
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(glob_match("blocks.*.weight", "blocks.0.attn.weight"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a?c*", "abcdef"));
  EXPECT_FALSE(glob_match("*.bias", "proj.weight"));
  EXPECT_FALSE(glob_match("a", "ab"));
}

}  // namespace
}  // namespace gradrack
