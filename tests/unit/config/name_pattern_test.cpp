// SPDX-License-Identifier: Apache-2.0
// Names with places for numbers: what they match, what is refused.
#include "core/config/name_pattern.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

NamePattern pattern(const std::string& text) {
  Result<NamePattern> parsed = NamePattern::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? *parsed : NamePattern();
}

TEST(NamePattern, FindsTheNumberAndPutsItIntoAnotherName) {
  const auto numbers = pattern("h.{n}.ln.weight").match("h.12.ln.weight");
  ASSERT_TRUE(numbers.has_value());
  EXPECT_EQ(pattern("blocks.{n}.norm{n}").fill(*numbers), "blocks.12.norm12");
}

TEST(NamePattern, MatchesWholeNamesAlone) {
  const NamePattern layer = pattern("h.{n}.w");
  for (const char* name : {"h..w", "h.x.w", "h.1.ww", "ah.1.w", "h.1.", "h.01.w", "h.-1.w", ""}) {
    EXPECT_FALSE(layer.match(name).has_value()) << name;
  }
  EXPECT_TRUE(layer.match("h.0.w").has_value());
  EXPECT_FALSE(pattern("h.{n}").match("h.1.w").has_value());
}

TEST(NamePattern, APlaceHasOneNumber) {
  const NamePattern twice = pattern("a{n}.b{n}");
  EXPECT_TRUE(twice.match("a3.b3").has_value());
  EXPECT_FALSE(twice.match("a3.b4").has_value());
  EXPECT_EQ(pattern("e{n}.{m}").match("e1.2")->at("m"), "2");
}

TEST(NamePattern, RefusesWhatCouldNotBeMeant) {
  for (const char* text : {"", "a{", "a}", "a{}", "a{N}", "a{n}{m}", "a{n.b"}) {
    EXPECT_FALSE(NamePattern::parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gradrack
