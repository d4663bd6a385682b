// SPDX-License-Identifier: Apache-2.0
// Data plugin `jsonl`: lines, packed and padded rows, splits.
#include "tests/unit/corpus/source.hpp"

namespace gradrack {
namespace {

using testing::Columns;
using testing::columns_of;
using testing::Instance;
using testing::OptionTexts;
using testing::TempFile;
using testing::train_request;

using Ids = std::vector<int64_t>;

struct Source {
  Source(const std::string& content, OptionTexts texts)
      : file("documents.jsonl", content), plugin(factory(), with_file(std::move(texts))) {}
  OptionTexts with_file(OptionTexts texts) const {
    texts["file"] = file.path();
    texts.emplace("tokenizer", "bytes");
    texts.emplace("validation_fraction", "0");
    texts.emplace("order", "sequential");
    return texts;
  }
  static const gr_factory_t* factory() {
    return testing::load_factory("gradrack_data_jsonl", "data", "jsonl");
  }
  Columns batch(int64_t index, int64_t rows) const {
    return columns_of(plugin, train_request(1, index, rows));
  }

  TempFile file;
  Instance<gr_data_t> plugin;
};

void expect_refused(const std::string& content, const OptionTexts& texts, const std::string& part) {
  const Source source(content, texts);
  EXPECT_NE(source.plugin.status(), GR_OK);
  EXPECT_NE(source.plugin.message().find(part), std::string::npos) << source.plugin.message();
}

constexpr const char* kThree =
    "{\"text\": \"abc\"}\n\n{\"text\": \"de\", \"id\": 7}\r\n{\"text\": \"fghij\"}";
constexpr int64_t kEnd = 256;
constexpr int64_t kNone = -100;

// TOK-05: positions begin anew with each document, and no target lies in the next one.
TEST(JsonlData, TOK05_PackedRowsKeepDocumentsApart) {
  const Source source(kThree, {{"block", "6"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(info_of(source.plugin).vocab, 257);
  EXPECT_EQ(info_of(source.plugin).train_items, 2);
  const Columns batch = source.batch(0, 2);
  EXPECT_EQ(batch.at("tokens"),
            (Ids{'a', 'b', 'c', kEnd, 'd', 'e', kEnd, 'f', 'g', 'h', 'i', 'j'}));
  EXPECT_EQ(batch.at("targets"),
            (Ids{'b', 'c', kEnd, kNone, 'e', kEnd, kNone, 'g', 'h', 'i', 'j', kEnd}));
  EXPECT_EQ(batch.at("positions"), (Ids{0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(batch.at("documents"), (Ids{0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1}));
}

TEST(JsonlData, PaddedRowsHaveOneDocument) {
  const Source source(kThree, {{"block", "4"}, {"rows", "padded"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(info_of(source.plugin).train_items, 4);  // the third takes two rows
  const Columns batch = source.batch(0, 4);
  EXPECT_EQ(batch.at("tokens"), (Ids{'a', 'b', 'c', kEnd, 'd', 'e', kEnd, kEnd, 'f', 'g', 'h', 'i',
                                     'j', kEnd, kEnd, kEnd}));
  EXPECT_EQ(batch.at("targets"), (Ids{'b', 'c', kEnd, kNone, 'e', kEnd, kNone, kNone, 'g', 'h', 'i',
                                      'j', kEnd, kNone, kNone, kNone}));
}

TEST(JsonlData, EveryTargetOfPaddedRowsIsThereOncePerEpoch) {
  for (const char* order : {"permuted", "sequential"}) {
    const Source source(kThree, {{"block", "4"}, {"rows", "padded"}, {"order", order}});
    int64_t targets = 0;
    for (const int64_t target : source.batch(0, 4).at("targets")) targets += target != kNone;
    EXPECT_EQ(targets, 3 + 2 + 5) << order;
  }
}

TEST(JsonlData, EmptyDocumentsTakeNoRow) {
  const Source source("{\"text\": \"\"}\n{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"c\"}",
                      {{"block", "4"}, {"rows", "padded"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(info_of(source.plugin).train_items, 2);
  EXPECT_EQ(source.batch(0, 1).at("tokens"), (Ids{'a', 'b', kEnd, kEnd}));
}

TEST(JsonlData, NamesAFaultyLine) {
  const std::string good = "{\"text\": \"abc\"}\n";
  expect_refused(good + "{\"text\": ", {}, "line 2 is no JSON");
  expect_refused(good + "[1]\n", {}, "line 2 is no object but array");
  expect_refused(good + good + "{\"body\": \"x\"}\n", {}, "line 3 has no 'text'");
  expect_refused(good + "{\"text\": 3}\n", {}, "line 2 has a number as 'text'");
  expect_refused(good + "{\"text\": \"\xff\"}\n", {}, "line 2 is no JSON");
  expect_refused("\n \n", {}, "no document");
  expect_refused(good, {{"block", "400"}}, "0 rows of 400 tokens");
}

TEST(JsonlData, SkipsFaultyLinesWhenToldSo) {
  const Source source("{\"text\": \"abc\"}\nnonsense\n{\"text\": \"de\"}\n",
                      {{"block", "2"}, {"invalid_lines", "skip"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_NE(std::string(info_of(source.plugin).summary).find("2 documents"), std::string::npos);
}

TEST(JsonlData, TakesAnotherField) {
  const Source source("{\"body\": \"abc\", \"text\": 3}\n", {{"block", "2"}, {"field", "body"}});
  EXPECT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
}

std::string many(int64_t from, int64_t to) {
  std::string content;
  for (int64_t k = from; k < to; ++k) {
    content += "{\"text\": \"document " + std::to_string(k) + "\"}\n";
  }
  return content;
}

/// The documents of the validation split.
std::vector<std::string> validation(const Source& source) {
  std::vector<std::string> texts;
  for (int64_t index = 0; index < info_of(source.plugin).validation_items; ++index) {
    const Columns batch = columns_of(source.plugin, testing::validation_request(index, 1));
    std::string text;
    for (const int64_t id : batch.at("tokens")) {
      if (id != kEnd) text.push_back(static_cast<char>(id));
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(JsonlData, SplitsByHashSoThatDocumentsKeepTheirSide) {
  const OptionTexts texts = {{"block", "16"}, {"rows", "padded"}, {"validation_fraction", "0.2"}};
  const std::vector<std::string> few = validation(Source(many(0, 200), texts));
  const std::vector<std::string> more = validation(Source(many(0, 300), texts));
  EXPECT_GT(few.size(), 20u);
  EXPECT_LT(few.size(), 60u);
  ASSERT_LT(few.size(), more.size());
  EXPECT_TRUE(std::equal(few.begin(), few.end(), more.begin()));
}

TEST(JsonlData, SplitsByPosition) {
  const Source source(
      many(0, 10),
      {{"block", "16"}, {"rows", "padded"}, {"validation_fraction", "0.2"}, {"split", "position"}});
  EXPECT_EQ(validation(source), (std::vector<std::string>{"document 8", "document 9"}));
}

TEST(JsonlData, UsesATokenizerFile) {
  const std::string folder = GRADRACK_SOURCE_DIR "/tests/golden/tokenizers/";
  const Source source("{\"text\": \"she sells <|endoftext|> shells\"}\n",
                      {{"block", "4"},
                       {"tokenizer", "bpe"},
                       {"tokenizer_file", folder + "bpe.json"},
                       {"rows", "padded"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(info_of(source.plugin).vocab, 421);
  int64_t ends = 0;
  for (int64_t row = 0; row < info_of(source.plugin).train_items; ++row) {
    for (const int64_t target : source.batch(row, 1).at("targets")) ends += target == 0;
  }
  EXPECT_EQ(ends, 1) << "once a document, whatever its text says";
}

TEST(JsonlData, RefusesOptionsOfAnotherTokenizer) {
  expect_refused("{\"text\": \"x\"}\n", {{"tokenizer", "bpe"}}, "the tokenizer bpe reads it");
  expect_refused("{\"text\": \"x\"}\n", {{"special_tokens", "true"}},
                 "`special_tokens` is for bpe");
}

}  // namespace
}  // namespace gradrack
