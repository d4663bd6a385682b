// SPDX-License-Identifier: Apache-2.0
// What a scalar means.
#include "core/config/scalar.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace gradrack {
namespace {

YamlNode plain(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  return node;
}

YamlNode quoted(const std::string& text) {
  YamlNode node = plain(text);
  node.plain = false;
  return node;
}

TEST(Scalar, YML05_OnlyTrueAndFalseAreBooleans) {
  for (const char* word : {"true", "True", "TRUE"}) EXPECT_EQ(read_bool(plain(word)), true);
  for (const char* word : {"false", "False", "FALSE"}) EXPECT_EQ(read_bool(plain(word)), false);
  for (const char* word : {"yes", "no", "on", "off", "y", "n", "tRue", "0", "1", ""}) {
    EXPECT_EQ(read_bool(plain(word)), std::nullopt) << word;
  }
}

TEST(Scalar, YML06_QuotedFalseIsText) { EXPECT_EQ(read_bool(quoted("false")), std::nullopt); }

TEST(Scalar, ReadsScientificNotation) {
  EXPECT_EQ(read_float(plain("1e-3")), 1e-3);
  EXPECT_EQ(read_float(plain("-2.5E+2")), -250.0);
  EXPECT_EQ(read_float(plain(".5")), 0.5);
}

TEST(Scalar, QuotedNumbersAreText) {
  EXPECT_EQ(read_float(quoted("1")), std::nullopt);
  EXPECT_EQ(read_int(quoted("1")), std::nullopt);
}

TEST(Scalar, YML11_ReadsInfinityAsYamlWritesIt) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(read_float(plain(".inf")), infinity);
  EXPECT_EQ(read_float(plain("-.INF")), -infinity);
  EXPECT_TRUE(std::isnan(*read_float(plain(".nan"))));
  for (const char* word :
       {"inf", "nan", "infinity", "0x1p3", "1e", "e3", ".", "--1", "+-1", "1_0"}) {
    EXPECT_EQ(read_float(plain(word)), std::nullopt) << word;
  }
}

TEST(Scalar, YML11_DoublesReadBackBitForBit) {
  for (const double x : {0.1, 1e-8, 1.0, -0.0, 5e-324, 1.7976931348623157e308, 1.0 / 3,
                         std::numeric_limits<double>::infinity()}) {
    const std::optional<double> back = read_float(plain(yaml_number(x)));
    ASSERT_TRUE(back.has_value()) << yaml_number(x);
    EXPECT_EQ(std::bit_cast<uint64_t>(*back), std::bit_cast<uint64_t>(x)) << yaml_number(x);
  }
}

TEST(Scalar, ReadsWholeNumbersToTheLimits) {
  EXPECT_EQ(read_int(plain("9223372036854775807")), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(read_int(plain("-9223372036854775808")), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(read_int(plain("9223372036854775808")), std::nullopt);
  EXPECT_EQ(read_int(plain("0x10")), 16);
  EXPECT_EQ(read_int(plain("0o17")), 15);
  EXPECT_EQ(read_int(plain("1.0")), std::nullopt);
}

TEST(Scalar, DescribesWhatStandsThere) {
  EXPECT_EQ(describe(plain("3")), "the number 3");
  EXPECT_EQ(describe(quoted("3")), "text '3'");
  EXPECT_EQ(describe(plain("true")), "the boolean true");
  EXPECT_EQ(describe(YamlNode{}), "nothing");
}

}  // namespace
}  // namespace gradrack
