// SPDX-License-Identifier: Apache-2.0
// Expressions of patterns: what they mean, what is wrong with bad ones and where; random texts.
#include "core/plan/pattern.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gradrack {
namespace {

using Ints = std::vector<int>;
using Texts = std::vector<std::string>;

TEST(Pattern, StatementsShareValuesByName) {
  const auto pattern = parse_pattern("h = Add(x, y); n = gradrack.Norm(h, w)");
  ASSERT_TRUE(pattern.ok()) << pattern.status().message();
  EXPECT_FALSE(pattern->is_set());
  EXPECT_EQ(pattern->values, (Texts{"h", "x", "y", "n", "w"}));
  ASSERT_EQ(pattern->nodes.size(), 2u);
  EXPECT_EQ(pattern->nodes[0].ops, (Texts{"Add"}));
  EXPECT_EQ(pattern->nodes[0].outputs, (Ints{0}));
  EXPECT_EQ(pattern->nodes[0].inputs, (Ints{1, 2}));
  EXPECT_EQ(pattern->nodes[1].ops, (Texts{"gradrack.Norm"}));
  EXPECT_EQ(pattern->nodes[1].inputs, (Ints{0, 4}));
}

TEST(Pattern, AlternativesAnythingAndMore) {
  const auto pattern = parse_pattern(" a,_,...=P|d.e.Q ( _ , ... ) ;b=R(a,a) ; ");
  ASSERT_TRUE(pattern.ok()) << pattern.status().message();
  EXPECT_EQ(pattern->nodes[0].ops, (Texts{"P", "d.e.Q"}));
  EXPECT_EQ(pattern->nodes[0].outputs, (Ints{0, PatternNode::kAnything}));
  EXPECT_TRUE(pattern->nodes[0].more_outputs);
  EXPECT_EQ(pattern->nodes[0].inputs, (Ints{PatternNode::kAnything}));
  EXPECT_TRUE(pattern->nodes[0].more_inputs);
  EXPECT_FALSE(pattern->nodes[1].more_inputs);
  EXPECT_EQ(pattern->nodes[1].inputs, (Ints{0, 0}));
}

TEST(Pattern, SetsOfOperators) {
  const auto pattern = parse_pattern("{Add, gradrack.SwishGrad,Cast}");
  ASSERT_TRUE(pattern.ok()) << pattern.status().message();
  EXPECT_TRUE(pattern->is_set());
  EXPECT_EQ(pattern->set, (std::set<std::string>{"Add", "Cast", "gradrack.SwishGrad"}));
}

TEST(Pattern, ErrorsSayWhereAndWhatIsWanted) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "at character 1 (the end): wanted the name of a value"},
      {"a = Add(x, y)", "wanted two statements or more"},
      {"a = (x)", "at character 5 (before '(x)'): wanted the name of an operator"},
      {"a = Add(x,)", "at character 11 (before ')'): wanted the name of a value"},
      {"a = Add(x y)", "at character 11 (before 'y)'): wanted ',' or ')'"},
      {"a Add(x)", "at character 3 (before 'Add(x)'): wanted ',' or '='"},
      {"a = Add x", "at character 9 (before 'x'): wanted '|' or '('"},
      {"a = Add|(x)", "at character 9 (before '(x)'): wanted the name of an operator"},
      {"a = d.(x)", "at character 7 (before '(x)'): wanted the name of an operator"},
      {"a = A(x); a = B(a)", "at character 11 (before 'a = B(a)'): 'a' is made twice"},
      {"a = A(b); b = B(x)", "at character 11 (before 'b = B(x)'): 'b' is read before it is made"},
      {"a = A(a); b = B(a)", "at character 7"},
      {"a, a = A(x); b = B(a)", "at character 4"},
      {"a = A(x); b = B(y)", "statement 2 (B) shares no value with those before it"},
      {"a = A(x); b = B(_)", "statement 2 (B) shares no value"},
      {"a = A(..., x); b = B(a)", "wanted ')' behind '...'"},
      {"a = A(x); b = B(a) c", "wanted ';', or the end of the expression"},
      {"a = A(x); b = B(a); }", "wanted the name of a value"},
      {"{}", "at character 2 (before '}'): wanted the name of an operator"},
      {"{Add", "at character 5 (the end): wanted ',' or '}'"},
      {"{Add, Add}", "'Add' is named twice"},
      {"{Add} x", "wanted the end of the expression behind '}'"},
      {"1 = Add(x)", "at character 1 (before '1 = Add(x)')"}};
  for (const auto& [text, wanted] : cases) {
    const auto pattern = parse_pattern(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.status().code(), GR_INVALID_ARGUMENT);
    EXPECT_NE(pattern.status().message().find(wanted), std::string::npos)
        << text << ": " << pattern.status().message();
  }
}

TEST(Pattern, TooManyStatementsAreRefused) {
  std::string text = "a0 = A(x)";
  for (int k = 1; k < 64; ++k) {
    text += "; a" + std::to_string(k) + " = A(a" + std::to_string(k - 1) + ")";
  }
  EXPECT_TRUE(parse_pattern(text).ok());
  EXPECT_FALSE(parse_pattern(text + "; b = B(a0)").ok());
  EXPECT_FALSE(parse_pattern("{A" + std::string(10000, 'b') + "}").ok());
}

/// Numbers and lists of a pattern that was accepted hold together.
void expect_consistent(const PatternText& pattern, const std::string& text) {
  if (pattern.is_set()) {
    EXPECT_FALSE(pattern.set.empty()) << text;
    return;
  }
  EXPECT_GE(pattern.nodes.size(), 2u) << text;
  std::set<int> made;
  for (const PatternNode& node : pattern.nodes) {
    EXPECT_FALSE(node.ops.empty()) << text;
    for (const int value : node.inputs) EXPECT_LT(value, int(pattern.values.size())) << text;
    for (const int value : node.outputs) {
      EXPECT_LT(value, int(pattern.values.size())) << text;
      if (value < 0) continue;
      EXPECT_TRUE(made.insert(value).second) << text;
    }
  }
}

TEST(Pattern, RandomTextsAreReadOrRefused) {
  const char* const pieces[] = {"a",           "b",    "_",
                                "x1",          "Add",  "gradrack.Cast",
                                "=",           "(",    ")",
                                ",",           ";",    "|",
                                "{",           "}",    "...",
                                ".",           " ",    "\n",
                                "\0",          "\xff", "a = Add(x, b); ",
                                "b = Cast(a)", "7"};
  std::mt19937 engine(7);
  size_t accepted = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    for (size_t k = 1 + engine() % 6; k > 0; --k) text += pieces[engine() % std::size(pieces)];
    const auto pattern = parse_pattern(text);
    if (!pattern.ok()) continue;
    ++accepted;
    expect_consistent(*pattern, text);
  }
  EXPECT_GT(accepted, 10u);
}

}  // namespace
}  // namespace gradrack
