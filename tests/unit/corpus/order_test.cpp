// SPDX-License-Identifier: Apache-2.0
// Data plugin `text`: orders of windows, tokenizers from files.
#include <algorithm>

#include "tests/unit/corpus/source.hpp"

namespace gradrack {
namespace {

using testing::first_tokens;
using testing::Instance;
using testing::OptionTexts;
using testing::TempFile;

std::string numbered(size_t count) {
  std::string text;
  for (size_t k = 0; k < count; ++k) text.push_back(static_cast<char>(k));
  return text;
}

struct Source {
  Source(const std::string& content, OptionTexts texts)
      : file("text.txt", content), plugin(factory(), with_file(std::move(texts))) {}
  OptionTexts with_file(OptionTexts texts) const {
    texts["file"] = file.path();
    texts.emplace("tokenizer", "bytes");
    return texts;
  }
  static const gr_factory_t* factory() {
    return testing::load_factory("gradrack_data_text", "data", "text");
  }
  TempFile file;
  Instance<gr_data_t> plugin;
};

TEST(TextOrder, PermutedSeesEveryWindowOnceAnEpoch) {
  const Source source(numbered(201),
                      {{"block", "10"}, {"order", "permuted"}, {"validation_fraction", "0"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(info_of(source.plugin).train_items, 20);
  const std::vector<int64_t> all = first_tokens(source.plugin, 3, 0, 10, 4);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen(all.begin() + static_cast<std::ptrdiff_t>(epoch) * 20,
                              all.begin() + static_cast<std::ptrdiff_t>(epoch + 1) * 20);
    EXPECT_FALSE(std::is_sorted(seen.begin(), seen.end()));
    std::sort(seen.begin(), seen.end());
    for (size_t k = 0; k < 20; ++k) EXPECT_EQ(seen[k], static_cast<int64_t>(k) * 10);
  }
}

TEST(TextOrder, SequentialFollowsTheText) {
  const Source source(numbered(101),
                      {{"block", "10"}, {"order", "sequential"}, {"validation_fraction", "0"}});
  EXPECT_EQ(first_tokens(source.plugin, 3, 1, 2, 3), (std::vector<int64_t>{30, 40, 50}));
}

TEST(TextOrder, IdentityTellsTextsAndOptionsApart) {
  const auto identity = [](const std::string& content, const OptionTexts& texts) {
    return std::string(info_of(Source(content, texts).plugin).identity);
  };
  const std::string one = identity(numbered(200), {{"block", "10"}});
  EXPECT_EQ(identity(numbered(200), {{"block", "10"}}), one);
  EXPECT_NE(identity(numbered(201), {{"block", "10"}}), one);
  EXPECT_NE(identity(numbered(200), {{"block", "11"}}), one);
  EXPECT_NE(identity(numbered(200), {{"block", "10"}, {"order", "permuted"}}), one);
  EXPECT_NE(identity(numbered(200), {{"block", "10"}, {"tokenizer", "chars"}}),
            identity(numbered(200), {{"block", "10"}, {"tokenizer", "bytes"}}));
}

TEST(TextOrder, TokenizerFromAFileEncodesAndDecodes) {
  const std::string folder = GRADRACK_SOURCE_DIR "/tests/golden/tokenizers/";
  const std::string text = "she sells sea shells by the sea shore, it's what they'd say. ";
  const Source source(
      text + text + text,
      {{"block", "4"}, {"tokenizer", "bpe"}, {"tokenizer_file", folder + "bpe.json"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  std::vector<int64_t> ids(100);
  uint64_t count = 0, bytes = 0;
  gr_error_t err = {};
  ASSERT_EQ(source.plugin->encode(source.plugin.self(), text.data(), text.size(), ids.data(), 100,
                                  &count, &err),
            GR_OK);
  EXPECT_LT(count, text.size());
  std::string back(200, '\0');
  ASSERT_EQ(source.plugin->decode(source.plugin.self(), ids.data(), count, back.data(), 200, &bytes,
                                  &err),
            GR_OK);
  EXPECT_EQ(back.substr(0, bytes), text);
}

TEST(TextOrder, NamesTheFileOfBytesThatAreNoUtf8) {
  const std::string folder = GRADRACK_SOURCE_DIR "/tests/golden/tokenizers/";
  OptionTexts texts = {
      {"block", "2"}, {"tokenizer", "bpe"}, {"tokenizer_file", folder + "bpe.json"}};
  const Source source("some text \xff and more text, and still more", texts);
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_NE(source.plugin.message().find("byte 255 at position 10"), std::string::npos)
      << source.plugin.message();
  EXPECT_NE(source.plugin.message().find("text.txt"), std::string::npos) << source.plugin.message();
  texts["invalid_utf8"] = "replace";
  EXPECT_EQ(Source("some text \xff and more text, and still more", texts).plugin.status(), GR_OK);
}

}  // namespace
}  // namespace gradrack
