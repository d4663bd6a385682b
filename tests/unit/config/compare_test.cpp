// SPDX-License-Identifier: Apache-2.0
// Comparing configurations: by meaning, not by spelling.
#include "core/config/compare.hpp"

#include <gtest/gtest.h>

#include "core/config/run_config.hpp"

namespace gradrack {
namespace {

std::string differences(const std::string& before, const std::string& now) {
  const auto default_of = [](const std::string& key) -> std::optional<std::string> {
    if (key == "a.betas") return "[0.9, 0.999]";
    if (key == "a.eps") return "1e-8";
    if (key == "p.plugin") return "fp32";
    return {};
  };
  const auto old_tree = parse_yaml(before, "old"), new_tree = parse_yaml(now, "new");
  EXPECT_TRUE(old_tree.ok() && new_tree.ok());
  std::string text;
  for (const ConfigDifference& each : compare_configs(*old_tree, *new_tree, default_of)) {
    text += each.key + ": " + each.before + " -> " + each.now + "\n";
  }
  return text;
}

TEST(CompareConfigs, SpellingsOfOneValueAreEqual) {
  EXPECT_EQ(differences("a: {x: 1e-3, y: [1, 2], z: {plugin: s}}",
                        "a: {y: [1, 2], x: 0.001, z: [{plugin: [s]}]}"),
            "");
  EXPECT_EQ(differences("a: {x: 1}", "a: {x: 1, eps: 0.00000001, betas: [0.9, 0.999]}"), "");
  EXPECT_EQ(differences("a: {x: 1}", "{a: {x: 1}, p: {plugin: fp32}}"), "");
}

TEST(CompareConfigs, EachDifferenceHasBothSides) {
  EXPECT_EQ(differences("a: {x: 1, eps: 1e-6}", "a: {x: 2, betas: [0.9, 0.99]}"),
            "a.x: 1 -> 2\na.betas.1: 0.999 -> 0.99\na.eps: 1e-06 -> 1e-08\n");
  EXPECT_EQ(differences("a: {x: 1}", "a: {x: 1, new: yes}"), "a.new: nothing -> yes\n");
}

TEST(ParseDuration, ReadsUnitsLargestFirst) {
  EXPECT_EQ(*parse_duration("90s"), 90);
  EXPECT_EQ(*parse_duration("1h30m"), 5400);
  EXPECT_EQ(*parse_duration("2h0m1s"), 7201);
  for (const char* wrong :
       {"", "90", "s", "30m1h", "1h1h", "-5s", "0s", "1.5h", "1d", "9999999999s"}) {
    EXPECT_FALSE(parse_duration(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace gradrack
