// SPDX-License-Identifier: Apache-2.0
// Data plugin `text`, through the C ABI.
#include <algorithm>
#include <set>

#include "gradrack/philox.h"
#include "tests/unit/plugins/batch.hpp"

namespace gradrack {
namespace {

using testing::get_batch;
using testing::Instance;
using testing::OptionTexts;
using testing::TempFile;
using testing::train_request;
using testing::validation_request;

const gr_factory_t* factory() {
  return testing::load_factory("gradrack_data_text", "data", "text");
}

/// "abc...": `count` bytes that run through the alphabet, so that a token tells its position
/// mod 26.
std::string alphabet(size_t count) {
  std::string text;
  for (size_t k = 0; k < count; ++k) text.push_back(static_cast<char>('a' + k % 26));
  return text;
}

struct Source {
  Source(const std::string& content, OptionTexts texts)
      : file("text.txt", content), plugin(factory(), with_file(std::move(texts))) {}

  OptionTexts with_file(OptionTexts texts) const {
    texts["file"] = file.path();
    return texts;
  }
  gr_data_info_t info() const {
    gr_data_info_t info = {};
    info.struct_size = sizeof info;
    gr_error_t err = {};
    EXPECT_EQ(plugin->info(plugin.self(), &info, &err), GR_OK);
    return info;
  }

  TempFile file;
  Instance<gr_data_t> plugin;
};

TEST(TextData, SplitsByPosition) {
  const Source source(alphabet(1000), {{"block", "8"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  const gr_data_info_t info = source.info();
  EXPECT_EQ(info.vocab, 26);
  EXPECT_EQ(info.block, 8);
  EXPECT_EQ(info.train_items, 900 - 8);
  EXPECT_EQ(info.validation_items, (100 - 1) / 8);
  EXPECT_EQ(info.outputs[0].limit, 26);
}

TEST(TextData, TrainsOnTheFirstNineTenthsExactly) {
  for (const int64_t n : {1009, 1010, 1011, 12345, 1115394}) {
    const Source source(alphabet(static_cast<size_t>(n)), {{"block", "8"}});
    EXPECT_EQ(source.info().train_items, n * 9 / 10 - 8) << n;
  }
}

TEST(TextData, ShiftsTargetsByOne) {
  const Source source(alphabet(1000), {{"block", "8"}});
  const auto batch = get_batch<int64_t>(source.plugin, train_request(7, 3, 16));
  ASSERT_EQ(batch.status, GR_OK);
  for (size_t k = 0; k < batch.first.size(); ++k) {
    EXPECT_EQ(batch.second[k], (batch.first[k] + 1) % 26);
  }
}

TEST(TextData, DrawsAWindowAsPhiloxSays) {
  const Source source(alphabet(1000), {{"block", "8"}});
  const int64_t index = (int64_t{5} << 32) + 6;
  const auto batch = get_batch<int64_t>(source.plugin, train_request(42, index, 4));
  for (uint32_t row = 0; row < 4; ++row) {
    const uint32_t counter[4] = {6, 5, row, 0x64617461};
    uint32_t draw[4];
    gr_philox4x32(counter, 42, draw);
    // The top bits of u * n / 2^64, taken in long double, which holds 64 bits exactly.
    const uint64_t u = draw[0] | static_cast<uint64_t>(draw[1]) << 32;
    const auto start = static_cast<int64_t>(static_cast<long double>(u) * 892 / 0x1p64L);
    EXPECT_EQ(batch.first[row * 8], start % 26) << row;
  }
}

TEST(TextData, BatchIsAFunctionOfSeedAndIndexAlone) {
  const Source a(alphabet(5000), {{"block", "8"}});
  const Source b(alphabet(5000), {{"block", "8"}});
  (void)get_batch<int64_t>(b.plugin, train_request(1, 100, 4));  // history must not matter
  EXPECT_EQ(get_batch<int64_t>(a.plugin, train_request(1, 5, 4)).first,
            get_batch<int64_t>(b.plugin, train_request(1, 5, 4)).first);
  EXPECT_NE(get_batch<int64_t>(a.plugin, train_request(1, 5, 4)).first,
            get_batch<int64_t>(a.plugin, train_request(1, 6, 4)).first);
  EXPECT_NE(get_batch<int64_t>(a.plugin, train_request(1, 5, 4)).first,
            get_batch<int64_t>(a.plugin, train_request(2, 5, 4)).first);
}

TEST(TextData, ReachesFirstAndLastWindowAndNoFurther) {
  // 20 training tokens a..t, block 17: starts 0, 1, 2; u..x validate.
  const Source source(alphabet(40), {{"block", "17"}, {"validation_fraction", "0.5"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  std::set<int64_t> starts;
  int64_t largest = 0;
  for (int64_t index = 0; index < 40; ++index) {
    const auto batch = get_batch<int64_t>(source.plugin, train_request(3, index, 4));
    for (size_t row = 0; row < 4; ++row) starts.insert(batch.first[row * 17]);
    largest = std::max(largest, *std::max_element(batch.second.begin(), batch.second.end()));
  }
  EXPECT_EQ(starts, (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(largest, 19);
}

TEST(TextData, WalksValidationInOrderWithAShortLastBatch) {
  const Source source(alphabet(1000), {{"block", "8"}});  // 12 windows from token 900
  const auto first = get_batch<int64_t>(source.plugin, validation_request(0, 5));
  const auto last = get_batch<int64_t>(source.plugin, validation_request(2, 5));
  EXPECT_EQ(first.rows, 5);
  EXPECT_EQ(first.first[0], 900 % 26);
  EXPECT_EQ(first.first[8], 908 % 26);
  EXPECT_EQ(last.rows, 2);
  EXPECT_EQ(last.first[8], (900 + 11 * 8) % 26);
  EXPECT_EQ(last.second.back(), (900 + 12 * 8) % 26);
  EXPECT_EQ(get_batch<int64_t>(source.plugin, validation_request(3, 5)).rows, 0);
  EXPECT_EQ(get_batch<int64_t>(source.plugin, validation_request(INT64_MAX, 5)).rows, 0);
}

TEST(TextData, RefusesNegativePositions) {
  const Source source(alphabet(1000), {{"block", "8"}});
  EXPECT_EQ(get_batch<int64_t>(source.plugin, train_request(1, -1, 4)).status, GR_INVALID_ARGUMENT);
}

TEST(TextData, NumbersDistinctBytesInByteOrder) {
  const Source source("banana", {{"block", "1"}, {"validation_fraction", "0"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(source.info().vocab, 3);
  int64_t ids[3];
  uint64_t count = 0;
  gr_error_t err = {};
  ASSERT_EQ(source.plugin->encode(source.plugin.self(), "nab", 3, ids, 3, &count, &err), GR_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(std::vector<int64_t>(ids, ids + 3), (std::vector<int64_t>{2, 0, 1}));
}

TEST(TextData, TakesUtf8AsBytes) {
  const Source source("caf\xC3\xA9 caf\xC3\xA9", {{"block", "2"}, {"validation_fraction", "0"}});
  EXPECT_EQ(source.info().vocab, 6);  // space c a f C3 A9
  int64_t ids[8];
  uint64_t count = 0;
  gr_error_t err = {};
  const std::string text = "\xC3\xA9";
  ASSERT_EQ(source.plugin->encode(source.plugin.self(), text.data(), 2, ids, 8, &count, &err),
            GR_OK);
  ASSERT_EQ(count, 2u);
  char back[8];
  uint64_t bytes = 0;
  ASSERT_EQ(source.plugin->decode(source.plugin.self(), ids, 2, back, 8, &bytes, &err), GR_OK);
  EXPECT_EQ(std::string(back, bytes), text);
}

TEST(TextData, BytesTokenizerKeepsTheByteAsId) {
  const Source source("caf\xC3\xA9",
                      {{"block", "2"}, {"validation_fraction", "0"}, {"tokenizer", "bytes"}});
  EXPECT_EQ(source.info().vocab, 256);
  int64_t id = 0;
  uint64_t count = 0;
  gr_error_t err = {};
  ASSERT_EQ(source.plugin->encode(source.plugin.self(), "\xC3", 1, &id, 1, &count, &err), GR_OK);
  EXPECT_EQ(id, 0xC3);
}

TEST(TextData, WritesNoMoreThanTheCapacity) {
  const Source source("banana", {{"block", "1"}, {"validation_fraction", "0"}});
  int64_t ids[2] = {-7, -7};
  uint64_t count = 0;
  gr_error_t err = {};
  ASSERT_EQ(source.plugin->encode(source.plugin.self(), "banana", 6, ids, 1, &count, &err), GR_OK);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(ids[1], -7);
}

TEST(TextData, RefusesACharacterTheTextLacks) {
  const Source source("banana", {{"block", "1"}, {"validation_fraction", "0"}});
  uint64_t count = 0;
  gr_error_t err = {};
  EXPECT_EQ(source.plugin->encode(source.plugin.self(), "bx", 2, nullptr, 0, &count, &err),
            GR_OUT_OF_RANGE);
  EXPECT_NE(std::string(err.message).find("'x' at position 1"), std::string::npos) << err.message;
}

TEST(TextData, NamesAMissingFile) {
  const Instance<gr_data_t> plugin(factory(), {{"file", "no/such/text.txt"}});
  EXPECT_EQ(plugin.status(), GR_NOT_FOUND);
  EXPECT_EQ(plugin.field(), "file");
  EXPECT_NE(plugin.message().find("no/such/text.txt"), std::string::npos) << plugin.message();
}

TEST(TextData, RefusesAFolder) {
  const Instance<gr_data_t> plugin(factory(), {{"file", "/"}});
  EXPECT_EQ(plugin.status(), GR_IO);
}

TEST(TextData, RefusesAnEmptyText) {
  const Source source("", {});
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_NE(source.plugin.message().find("empty"), std::string::npos) << source.plugin.message();
}

TEST(TextData, SaysTheSizesWhenTheTextIsShorterThanABlock) {
  const Source source(alphabet(100), {{"block", "64"}});
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_NE(source.plugin.message().find("90 tokens to train on and 10 to validate"),
            std::string::npos)
      << source.plugin.message();
  EXPECT_NE(source.plugin.message().find("65"), std::string::npos) << source.plugin.message();
}

TEST(TextData, NamesATokenOutsideTheVocabulary) {
  const Source source("aaaabc" + alphabet(200), {{"block", "8"}, {"vocab", "2"}});
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_EQ(source.plugin.field(), "vocab");
  EXPECT_NE(source.plugin.message().find("'c' at position 5 has id 2"), std::string::npos)
      << source.plugin.message();
}

}  // namespace
}  // namespace gradrack
