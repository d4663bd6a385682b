// SPDX-License-Identifier: Apache-2.0
// UTF-8: what is well-formed, and what replaces the rest; GPT-2's words.
#include "plugins/data/common/utf8.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "plugins/data/common/gpt2_words.hpp"

namespace corpus {
namespace {

TEST(Utf8, ReadsCodePointsOfEveryLength) {
  const std::string text = "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  std::vector<int32_t> points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = read_code_point(text, at);
    points.push_back(point.value);
    at += point.bytes;
  }
  EXPECT_EQ(points, (std::vector<int32_t>{'A', 0xE9, 0x20AC, 0x1F600}));
  EXPECT_EQ(find_ill_formed(text), std::string_view::npos);
}

TEST(Utf8, FindsTheFirstFault) {
  EXPECT_EQ(find_ill_formed("ab\xFFz"), 2u);
  EXPECT_EQ(find_ill_formed("a\xC0\xAF"), 1u);         // overlong
  EXPECT_EQ(find_ill_formed("\xED\xA0\x80"), 0u);      // a surrogate
  EXPECT_EQ(find_ill_formed("\xF4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(find_ill_formed("abc\xE2\x82"), 3u);       // cut
}

// As Python's "replace": one mark for each longest part that could have begun a code point.
TEST(Utf8, ReplacesAsPythonDoes) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_ill_formed("\xE2\x82x"), mark + "x");
  EXPECT_EQ(replace_ill_formed("\xF0\x9F\x98"), mark);
  EXPECT_EQ(replace_ill_formed("\xED\xA0\x80"), mark + mark + mark);
  EXPECT_EQ(replace_ill_formed("\xC0\xAF"), mark + mark);
  EXPECT_EQ(replace_ill_formed("\xC3("), mark + "(");
  EXPECT_EQ(replace_ill_formed("plain"), "plain");
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = gpt2_word_end(text, at);
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

TEST(Gpt2Words, FollowThePattern) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("it's we'd IT'S"), (Words{"it", "'s", " we", "'d", " IT", "'", "S"}));
  EXPECT_EQ(words("a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(words("a\n\n b \n"), (Words{"a", "\n\n", " b", " \n"}));
  EXPECT_EQ(words("x1, y2"), (Words{"x", "1", ",", " y", "2"}));
  EXPECT_EQ(words("a\r\nb"), (Words{"a", "\r", "\n", "b"}));
  EXPECT_EQ(words("a\xC2\xA0\xC2\xA0z"), (Words{"a", "\xC2\xA0", "\xC2\xA0", "z"}));
  EXPECT_EQ(words("e\xCC\x81"), (Words{"e", "\xCC\x81"}));  // a mark is no letter
  EXPECT_EQ(words(" "), Words{" "});
}

}  // namespace
}  // namespace corpus
