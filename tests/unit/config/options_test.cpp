// SPDX-License-Identifier: Apache-2.0
// Declared options against YAML: types, ranges, messages.
#include "core/config/options.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace gradrack {
namespace {

const gr_option_t kRows[] = {
    GR_OPT_FLOAT("eps", "1e-8", 0, INFINITY, "denominator"),
    GR_OPT_FLOATS("betas", "[0.9, 0.999]", 2, 0, 1, "moments"),
    GR_OPT_INT("layers", "4", 1, 64, "blocks"),
    GR_OPT_BOOL("compile", "false", "flag"),
    GR_OPT_CHOICE("norm", "rms", "rms|layer", "norm"),
    {sizeof(gr_option_t), GR_OPTION_MIN_EXCLUSIVE | GR_OPTION_MAX_EXCLUSIVE, "ratio",
     GR_OPTION_FLOAT, 0, "0.5", 0, 1, nullptr, "open range"},
    {sizeof(gr_option_t), 0, "title", GR_OPTION_STRING, 0, "", -INFINITY, INFINITY, nullptr,
     "text"},
    {sizeof(gr_option_t), 0, "words", GR_OPTION_STRING_LIST, 0, "[]", -INFINITY, INFINITY, nullptr,
     "texts"},
};

OptionTable table() {
  Result<OptionTable> rows = read_option_table(kRows, std::size(kRows), sizeof(gr_option_t));
  EXPECT_TRUE(rows.ok()) << rows.status().message();
  return *rows;
}

Result<OptionValues> check(const std::string& yaml) {
  GR_ASSIGN(const YamlNode root, parse_yaml(yaml, "run.yaml"));
  return check_options({"optimizer", "optimizer plugin 'test'", {"plugin"}, false}, table(),
                       root.entries, root.place);
}

std::string error_of(const std::string& yaml) {
  const Result<OptionValues> values = check(yaml);
  return values.ok() ? "no error" : values.status().message();
}

TEST(Options, FillsDefaultsInDeclaredOrder) {
  const Result<OptionValues> values = check("plugin: test\n");
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->abi().count, std::size(kRows));
  EXPECT_STREQ(values->abi().items[1].name, "betas");
  EXPECT_EQ(values->abi().items[1].count, 2u);
  EXPECT_EQ(values->abi().items[1].floats[1], 0.999);
  EXPECT_EQ(values->integer("layers"), 4);
  EXPECT_EQ(values->text("norm"), "rms");
  EXPECT_FALSE(values->given("eps"));
}

TEST(Options, KeepsItsAddressesWhenMoved) {
  Result<OptionValues> values = check("title: a long enough text to live on the heap\n");
  ASSERT_TRUE(values.ok());
  const gr_options_t* before = &values->abi();
  const OptionValues moved = std::move(*values);
  EXPECT_EQ(&moved.abi(), before);
  EXPECT_STREQ(gr_options_find(before, "title")->s, "a long enough text to live on the heap");
}

TEST(Options, WholeNumberServesAsFloat) {
  const Result<OptionValues> values = check("eps: 1\n");
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->number("eps"), 1.0);
  EXPECT_TRUE(values->given("eps"));
}

TEST(Options, OneTextServesAsListOfOne) {
  const Result<OptionValues> values = check("words: '*.bias'\n");
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->texts("words"), std::vector<std::string>{"*.bias"});
}

TEST(Options, YML05_PlainNoIsTextWhereTextIsWanted) {
  const Result<OptionValues> values = check("title: no\n");
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->text("title"), "no");
}

TEST(Options, YML05_YesIsNoBoolean) {
  EXPECT_EQ(error_of("compile: yes\n"),
            "run.yaml:1:10: optimizer.compile: got text 'yes', wanted true or false, without "
            "quotes");
}

TEST(Options, YML06_NothingElseBecomesABoolean) {
  EXPECT_NE(error_of("compile: \"false\"\n").find("got text 'false'"), std::string::npos);
  EXPECT_NE(error_of("compile: 0\n").find("got the number 0"), std::string::npos);
  EXPECT_NE(error_of("compile:\n").find("got nothing"), std::string::npos);
}

TEST(Options, YML08_UnknownKeyNamesThePathAndTheNearest) {
  EXPECT_EQ(error_of("plugin: test\nlayer: 3\n"),
            "run.yaml:2:1: optimizer.layer: unknown key (did you mean 'layers'?); optimizer plugin "
            "'test' knows eps, betas, layers, compile, norm, ratio, title, words, plugin");
}

TEST(Options, YML11_RefusesInfAndNanByRange) {
  EXPECT_TRUE(check("eps: .inf\n").ok());
  EXPECT_EQ(error_of("eps: .nan\n"),
            "run.yaml:1:6: optimizer.eps: got the number .nan, wanted a number >= 0");
  EXPECT_NE(error_of("eps: -.INF\n").find("got the number -.INF"), std::string::npos);
  EXPECT_NE(error_of("eps: inf\n").find("got text 'inf'"), std::string::npos);
  EXPECT_NE(error_of("ratio: .inf\n").find("wanted a number > 0 and < 1"), std::string::npos);
}

TEST(Options, ChecksRangesWithTheirEdges) {
  EXPECT_TRUE(check("layers: 64\n").ok());
  EXPECT_EQ(error_of("layers: 65\n"),
            "run.yaml:1:9: optimizer.layers: got the number 65, wanted a whole number >= 1 and <= "
            "64");
  EXPECT_NE(error_of("layers: 2.5\n").find("wanted a whole number"), std::string::npos);
  EXPECT_NE(error_of("ratio: 0\n").find("wanted a number > 0 and < 1"), std::string::npos);
  EXPECT_NE(error_of("ratio: 1\n").find("wanted a number > 0 and < 1"), std::string::npos);
}

TEST(Options, ChecksListLengthAndElements) {
  EXPECT_EQ(error_of("betas: [0.9]\n"),
            "run.yaml:1:8: optimizer.betas: got a list, wanted a list of 2 numbers >= 0 and <= 1, "
            "has 1");
  EXPECT_NE(error_of("betas: [0.9, 2]\n").find("element 1: got the number 2"), std::string::npos);
  EXPECT_NE(error_of("betas: 0.9\n").find("got the number 0.9, wanted a list of 2"),
            std::string::npos);
}

TEST(Options, RefusesAWordThatIsNoChoice) {
  EXPECT_EQ(error_of("norm: layr\n"),
            "run.yaml:1:7: optimizer.norm: got text 'layr', wanted one of rms, layer (did you mean "
            "'layer'?)");
}

TEST(Options, RefusesANumberWhereTextIsWanted) {
  EXPECT_EQ(error_of("title: 3\n"),
            "run.yaml:1:8: optimizer.title: got the number 3, wanted text: put it in quotes if it "
            "is meant as text");
}

TEST(OptionTable, RefusesDefaultOutsideItsOwnRange) {
  const gr_option_t row = GR_OPT_INT("layers", "0", 1, 64, "blocks");
  EXPECT_EQ(read_option_table(&row, 1, sizeof row).status().message(),
            "option 0 ('layers'): its default is not allowed by itself: got the number 0, wanted a "
            "whole number >= 1 and <= 64");
}

TEST(OptionTable, RefusesRowsWithoutNameTypeOrDefault) {
  gr_option_t row = GR_OPT_INT("layers", "1", 1, 64, "blocks");
  row.name = nullptr;
  EXPECT_EQ(read_option_table(&row, 1, sizeof row).status().message(), "option 0: no name");
  row = GR_OPT_INT("layers", "1", 1, 64, "blocks");
  row.type = 99;
  EXPECT_NE(read_option_table(&row, 1, sizeof row).status().message().find("type 99"),
            std::string::npos);
  row = GR_OPT_INT("layers", nullptr, 1, 64, "blocks");
  EXPECT_NE(read_option_table(&row, 1, sizeof row).status().message().find("nor with a default"),
            std::string::npos);
}

TEST(OptionTable, WalksALargerStride) {
  struct Later {
    gr_option_t row;
    int64_t added_in_a_later_minor;
  };
  const Later rows[] = {{GR_OPT_INT("a", "1", 0, 9, "first"), 7},
                        {GR_OPT_INT("b", "2", 0, 9, "second"), 8}};
  const Result<OptionTable> read = read_option_table(&rows[0].row, 2, sizeof(Later));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_STREQ((*read)[1].name, "b");
}

}  // namespace
}  // namespace gradrack
