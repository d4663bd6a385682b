// SPDX-License-Identifier: Apache-2.0
// --set, and writing a tree.
#include <gtest/gtest.h>

#include "core/config/yaml.hpp"

namespace gradrack {
namespace {

YamlNode tree(std::string_view text) {
  Result<YamlNode> root = parse_yaml(text, "run.yaml");
  EXPECT_TRUE(root.ok()) << root.status().message();
  return std::move(*root);
}

std::string set_error(const std::string& text, const std::string& assignment) {
  YamlNode root = tree(text);
  return apply_set(root, assignment).message();
}

TEST(YamlSet, ReplacesAValueAndTheLastWins) {
  YamlNode root = tree("optimizer: {lr: 1}\n");
  ASSERT_TRUE(apply_set(root, "optimizer.lr=2").ok());
  ASSERT_TRUE(apply_set(root, "optimizer.lr=3e-4").ok());
  EXPECT_EQ(root.find("optimizer")->find("lr")->text, "3e-4");
  EXPECT_EQ(root.find("optimizer")->find("lr")->place.text(), "--set optimizer.lr=3e-4");
}

TEST(YamlSet, MakesMapsThatAreMissing) {
  YamlNode root = tree("run: {}\n");
  ASSERT_TRUE(apply_set(root, "memory.limit=\"1 GiB\"").ok());
  const YamlNode* limit = root.find("memory")->find("limit");
  EXPECT_EQ(limit->text, "1 GiB");
  EXPECT_FALSE(limit->plain);
}

TEST(YamlSet, TakesListsAndIndexesThem) {
  YamlNode root = tree("backend: [{plugin: cpu}, {plugin: reference}]\n");
  ASSERT_TRUE(apply_set(root, "backend.0.threads=2").ok());
  EXPECT_EQ(root.find("backend")->items[0].find("threads")->text, "2");
  ASSERT_TRUE(apply_set(root, "backend={plugin: [a, b]}").ok());
  EXPECT_EQ(root.find("backend")->find("plugin")->items.size(), 2u);
}

TEST(YamlSet, EmptyValueIsNull) {
  YamlNode root = tree("run: {name: x}\n");
  ASSERT_TRUE(apply_set(root, "run.name=").ok());
  EXPECT_EQ(root.find("run")->find("name")->kind, YamlNode::Kind::kNull);
}

TEST(YamlSet, RefusesWhatItCannotPlace) {
  EXPECT_EQ(set_error("a: 1\n", "a.b=2"), "--set a.b=2: 'b' lies below a value, not below a map");
  EXPECT_EQ(set_error("a: [1]\n", "a.1=2"),
            "--set a.1=2: '1' is no index into a list of 1 (they start at 0)");
  EXPECT_EQ(set_error("a: 1\n", "a"), "--set a: wanted KEY=VALUE, such as optimizer.lr=1e-3");
  EXPECT_EQ(set_error("a: 1\n", "a..b=1"), "--set a..b=1: an empty word in the key");
}

TEST(YamlSet, SaysWhatIsWrongWithTheValue) {
  EXPECT_NE(set_error("a: 1\n", "a=[1").find("--set a=[1"), std::string::npos)
      << set_error("a: 1\n", "a=[1");
}

TEST(YamlWrite, YML11_RoundTripKeepsKindAndText) {
  const char* text =
      "run: {a: 1e-3, b: .inf, c: \"no\", d: no, e: '1', f: [], g: {}, h: , i: [1, [2, x]],\n"
      "  j: true, k: 'a\"b\\', l: '$${X}', m: {n: {o: -0.0}}}\n";
  const YamlNode root = tree(text);
  const std::string once = to_yaml(root);
  const YamlNode again = tree(once);
  EXPECT_EQ(to_yaml(again), once);
  const YamlNode& run = *again.find("run");
  EXPECT_EQ(run.find("a")->text, "1e-3");
  EXPECT_TRUE(run.find("b")->plain);
  EXPECT_EQ(run.find("d")->text, "no");
  EXPECT_FALSE(run.find("e")->plain);
  EXPECT_EQ(run.find("f")->kind, YamlNode::Kind::kList);
  EXPECT_EQ(run.find("g")->kind, YamlNode::Kind::kMap);
  EXPECT_EQ(run.find("h")->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(run.find("i")->items[1].items[1].text, "x");
  EXPECT_EQ(run.find("k")->text, "a\"b\\");
  EXPECT_EQ(run.find("l")->text, "${X}");
  EXPECT_EQ(run.find("m")->find("n")->find("o")->text, "-0.0");
}

TEST(YamlWrite, KeysReadBackAsTheyAre) {
  const YamlNode root = tree("'${a': 1\n'$${b}': [2]\n'c d': 3\n");  // nothing is expanded in keys
  const YamlNode again = tree(to_yaml(root));
  for (const char* key : {"${a", "$${b}", "c d"}) {
    ASSERT_NE(root.find(key), nullptr) << key;
    EXPECT_NE(again.find(key), nullptr) << key << " in " << to_yaml(root);
  }
}

}  // namespace
}  // namespace gradrack
