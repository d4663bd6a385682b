// SPDX-License-Identifier: Apache-2.0
// The parser's wall: what is refused, with which words and where; what is resolved.
#include "core/config/yaml.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gradrack {
namespace {

std::string error_of(std::string_view text) {
  const Result<YamlNode> root = parse_yaml(text, "run.yaml");
  return root.ok() ? "no error" : root.status().message();
}

YamlNode tree(std::string_view text) {
  Result<YamlNode> root = parse_yaml(text, "run.yaml");
  EXPECT_TRUE(root.ok()) << root.status().message();
  return root.ok() ? std::move(*root) : YamlNode{};
}

std::string value(const YamlNode& root, std::string_view section, std::string_view key) {
  const YamlNode* map = root.find(section);
  const YamlNode* node = map != nullptr ? map->find(key) : nullptr;
  return node != nullptr ? node->text : "absent";
}

TEST(YamlConfig, YML02_RefusesRepeatedKeyWithBothLines) {
  EXPECT_EQ(error_of("optimizer:\n  lr: 1\n  eps: 3\n  lr: 2\n"),
            "run.yaml:4:3: 'optimizer.lr' is given twice: here and on line 2; remove one");
}

TEST(YamlConfig, YML02_RefusesRepeatedSection) {
  EXPECT_EQ(error_of("optimizer: {lr: 1}\nrun: {}\noptimizer: {lr: 2}\n"),
            "run.yaml:3:1: 'optimizer' is given twice: here and on line 1; remove one");
}

TEST(YamlConfig, YML02_RefusesRepeatedKeyInFlowStyle) {
  EXPECT_EQ(error_of("optimizer: {lr: 1,\n  lr: 2}\n"),
            "run.yaml:2:3: 'optimizer.lr' is given twice: here and on line 1; remove one");
}

TEST(YamlConfig, YML02_RefusesRepeatedKeyInsideAList) {
  EXPECT_EQ(error_of("a:\n  - {x: 1}\n  - {x: 1, x: 2}\n"),
            "run.yaml:3:12: 'a.1.x' is given twice: here and on line 3; remove one");
}

TEST(YamlConfig, YML03_MergeKeyInheritsAndOwnKeysWin) {
  const YamlNode root = tree("base: &b {lr: 1, wd: 2}\nrun: {<<: *b, wd: 3}\n");
  EXPECT_EQ(value(root, "run", "lr"), "1");
  EXPECT_EQ(value(root, "run", "wd"), "3");
  EXPECT_EQ(root.find("run")->find("<<"), nullptr);
}

TEST(YamlConfig, YML03_FirstOfAMergeListWins) {
  const YamlNode root = tree("x: &x {k: 1}\ny: &y {k: 2, m: 3}\nrun: {<<: [*x, *y]}\n");
  EXPECT_EQ(value(root, "run", "k"), "1");
  EXPECT_EQ(value(root, "run", "m"), "3");
}

TEST(YamlConfig, YML03_RefusesAliasOfItself) {
  EXPECT_EQ(error_of("a: &a\n  b: *a\n"), "run.yaml:2:6: an alias that contains itself");
}

TEST(YamlConfig, YML03_BoundsAliasBombs) {
  std::string text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int k = 1; k < 9; ++k) {
    const std::string previous = "*a" + std::to_string(k - 1);
    text += "a" + std::to_string(k) + ": &a" + std::to_string(k) + " [" + previous;
    for (int repeat = 1; repeat < 10; ++repeat) text += "," + previous;
    text += "]\n";
  }
  EXPECT_NE(error_of(text).find("more than 100000 values"), std::string::npos) << error_of(text);
}

TEST(YamlConfig, YML03_RefusesMergeOfAScalar) {
  EXPECT_NE(error_of("run: {<<: 3}\n").find("merge key '<<' wants a map"), std::string::npos);
}

TEST(YamlConfig, YML05_KeepsTheKeyY) {
  const YamlNode root = tree("y: 1\n");
  ASSERT_EQ(root.entries.size(), 1u);
  EXPECT_EQ(root.entries[0].key, "y");
}

TEST(YamlConfig, YML09_RefusesEmptyFile) {
  EXPECT_EQ(error_of(""), "run.yaml: nothing in it (empty, or comments alone)");
}

TEST(YamlConfig, YML09_RefusesCommentsAlone) {
  EXPECT_EQ(error_of("# a comment\n\n# another\n"),
            "run.yaml: nothing in it (empty, or comments alone)");
}

TEST(YamlConfig, YML09_RefusesSecondDocument) {
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"),
            "run.yaml:2:1: a second document starts here; a run file holds one: remove this '---'");
}

TEST(YamlConfig, YML09_AcceptsByteOrderMark) {
  EXPECT_EQ(value(tree("\xef\xbb\xbfrun: {seed: 3}\n"), "run", "seed"), "3");
}

TEST(YamlConfig, YML09_Refuses100kNestedFlowLists) {
  const std::string open = "a: " + std::string(100000, '[');
  EXPECT_EQ(error_of(open).substr(0, 10), "run.yaml:1");
  const std::string text = open + std::string(100000, ']');
  EXPECT_NE(error_of(text).find("nested more than 64 levels"), std::string::npos) << error_of(text);
}

TEST(YamlConfig, YML09_Refuses100kNestedFlowMaps) {
  std::string text = "a: ";
  for (int k = 0; k < 100000; ++k) text += "{a: ";
  EXPECT_NE(error_of(text).find("nested more than 64 levels"), std::string::npos);
}

TEST(YamlConfig, YML09_Refuses100kNestedBlockLists) {
  std::string text;
  for (int k = 0; k < 100000; ++k) text += "- ";
  EXPECT_NE(error_of(text).find("nested more than 64 levels"), std::string::npos);
}

TEST(YamlConfig, YML09_Refuses100kKeysInOneNest) {
  const std::string text = std::string(100000, '{') + std::string(100000, '}');
  EXPECT_NE(error_of(text).find("run.yaml:"), std::string::npos);
}

TEST(YamlConfig, RefusesTabsAsIndentation) {
  EXPECT_NE(error_of("run:\n\tseed: 1\n").find("run.yaml:2:"), std::string::npos)
      << error_of("run:\n\tseed: 1\n");
}

TEST(YamlConfig, SaysWhereSyntaxBreaks) {
  EXPECT_EQ(error_of("run: {seed: 1\n").substr(0, 9), "run.yaml:");
  EXPECT_NE(error_of("run: {seed: 1\n").find("not valid YAML"), std::string::npos);
}

TEST(YamlConfig, RefusesControlBytes) {
  EXPECT_EQ(error_of(std::string("a: 1\nb: \x04 2\nc: 3\n")),
            "run.yaml:2:4: byte 4 is not text: save the file as UTF-8 text");
}

TEST(YamlConfig, RefusesTags) {
  EXPECT_NE(error_of("a: !!python/object:os.system x\n").find("is not supported"),
            std::string::npos);
}

TEST(YamlConfig, RefusesAListAsKey) {
  EXPECT_NE(error_of("? [a, b]\n: 1\n").find("cannot be a key"), std::string::npos);
}

// Written with escapes, it would be longer than YAML reads.
TEST(YamlConfig, RefusesALongKey) {
  const std::string longest(200, '\x01');
  const auto quoted = [](size_t count) {
    std::string text = "\"";
    for (size_t k = 0; k < count; ++k) text += "\\x01";
    return text + "\": 1\n";
  };
  const Result<YamlNode> tree = parse_yaml(quoted(200), "file");
  ASSERT_TRUE(tree.ok());
  const Result<YamlNode> again = parse_yaml(to_yaml(*tree), "again");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(again->find(longest), nullptr);
  EXPECT_NE(error_of(quoted(201)).find("a key of 201 bytes, wanted at most 200"),
            std::string::npos);
}

TEST(YamlConfig, RefusesAHugeFile) {
  EXPECT_NE(error_of("a: " + std::string(size_t{1} << 20, 'x')).find("larger than 1 MiB"),
            std::string::npos);
}

TEST(YamlVariables, ReplacesSetOnesAndTakesDefaults) {
  ASSERT_EQ(setenv("GRADRACK_TEST_SET", "here", 1), 0);
  ASSERT_EQ(unsetenv("GRADRACK_TEST_UNSET"), 0);
  const YamlNode root =
      tree("run: {a: '${GRADRACK_TEST_SET}/x', b: '${GRADRACK_TEST_UNSET:-3}', c: '$${HOME}'}\n");
  EXPECT_EQ(value(root, "run", "a"), "here/x");
  EXPECT_EQ(value(root, "run", "b"), "3");
  EXPECT_EQ(value(root, "run", "c"), "${HOME}");
}

TEST(YamlVariables, RefusesUnsetOneByName) {
  ASSERT_EQ(unsetenv("GRADRACK_TEST_UNSET"), 0);
  EXPECT_EQ(error_of("run:\n  a: ${GRADRACK_TEST_UNSET}\n"),
            "run.yaml:2:6: environment variable 'GRADRACK_TEST_UNSET' is not set: set it, or write "
            "${GRADRACK_TEST_UNSET:-default}");
}

TEST(YamlFile, NamesAMissingFile) {
  const Result<YamlNode> root = load_yaml("/nonexistent/run.yaml");
  ASSERT_FALSE(root.ok());
  EXPECT_EQ(root.status().code(), GR_NOT_FOUND);
  EXPECT_EQ(root.status().message(),
            "/nonexistent/run.yaml: cannot open the config file: No such file or directory");
}

TEST(YamlFile, RefusesAFolder) {
  const Result<YamlNode> root = load_yaml("/tmp");
  ASSERT_FALSE(root.ok());
  EXPECT_EQ(root.status().message(), "/tmp: is a folder; give the run file itself");
}

}  // namespace
}  // namespace gradrack
