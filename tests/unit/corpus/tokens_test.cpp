// SPDX-License-Identifier: Apache-2.0
// Data plugin `tokens`: forms of files, shards, orders.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/unit/corpus/source.hpp"

namespace gradrack {
namespace {

using testing::columns_of;
using testing::first_tokens;
using testing::Instance;
using testing::OptionTexts;
using testing::train_request;
using testing::validation_request;

template <typename E>
std::string bytes_of(const std::vector<E>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(E)};
}

/// first, first + 1, ...
template <typename E>
std::string ids(size_t count, int first = 0) {
  std::vector<E> values(count);
  std::iota(values.begin(), values.end(), static_cast<E>(first));
  return bytes_of(values);
}

std::string header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> numbers(256);
  numbers[0] = magic;
  numbers[1] = version;
  numbers[2] = count;
  return bytes_of(numbers);
}

class TokensData : public ::testing::Test {
 protected:
  TokensData() { std::filesystem::create_directories(folder_); }
  ~TokensData() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + name, std::ios::binary) << content;
  }
  Instance<gr_data_t> make(const std::string& pattern, OptionTexts texts) const {
    static const gr_factory_t* factory =
        testing::load_factory("gradrack_data_tokens", "data", "tokens");
    texts["files"] = folder_ + pattern;
    if (texts.contains("validation_files")) {
      texts["validation_files"] = folder_ + texts["validation_files"];
    }
    return {factory, texts};
  }
  void expect_refused(const OptionTexts& texts, int32_t code, const std::string& part) const {
    const Instance<gr_data_t> plugin = make("*.bin", texts);
    EXPECT_EQ(plugin.status(), code) << plugin.message();
    EXPECT_NE(plugin.message().find(part), std::string::npos) << plugin.message();
  }

  const std::string folder_ =
      ::testing::TempDir() + "gradrack_tokens_" + std::to_string(getpid()) + "/";
};

TEST_F(TokensData, ReadsNanoGptsPlainFiles) {
  write("a.bin", ids<uint16_t>(1000, 3));
  const Instance<gr_data_t> plugin = make("a.bin", {{"block", "10"}});
  ASSERT_EQ(plugin.status(), GR_OK) << plugin.message();
  const gr_data_info_t info = info_of(plugin);
  EXPECT_EQ(info.vocab, 1003);
  EXPECT_EQ(info.train_items, 89);  // of 900 tokens, the last target too
  EXPECT_EQ(info.validation_items, 9);
  const testing::Columns batch = columns_of(plugin, validation_request(0, 2));
  EXPECT_EQ(batch.at("tokens")[0], 903);
  EXPECT_EQ(batch.at("targets")[0], 904);
  EXPECT_EQ(batch.at("tokens")[10], 913);
}

TEST_F(TokensData, ReadsLlmcsFilesOfBothVersions) {
  write("gpt2.bin", header(20240520, 1, 300) + ids<uint16_t>(300));
  write("llama.bin", header(20240801, 7, 300) + ids<uint32_t>(300, 70000));
  const Instance<gr_data_t> gpt2 = make("gpt2.bin", {{"block", "10"}});
  ASSERT_EQ(gpt2.status(), GR_OK) << gpt2.message();
  EXPECT_EQ(info_of(gpt2).vocab, 300);
  const Instance<gr_data_t> llama = make("llama.bin", {{"block", "10"}});
  ASSERT_EQ(llama.status(), GR_OK) << llama.message();
  EXPECT_EQ(info_of(llama).vocab, 70300);
  EXPECT_EQ(columns_of(llama, validation_request(0, 1)).at("tokens")[0], 70270);
}

TEST_F(TokensData, TakesAHeaderForTokensWhenToldSo) {
  write("a.bin", header(20240520, 1, 300) + ids<uint16_t>(300));
  const Instance<gr_data_t> plugin = make("a.bin", {{"block", "10"}, {"form", "plain"}});
  ASSERT_EQ(plugin.status(), GR_OK) << plugin.message();
  EXPECT_NE(std::string(info_of(plugin).summary).find("812 tokens"), std::string::npos);
}

TEST_F(TokensData, RefusesFilesThatAreNotWhatTheySay) {
  write("a.bin", header(20240520, 1, 301) + ids<uint16_t>(300));
  expect_refused({}, GR_INVALID_ARGUMENT, "its header speaks of 301 tokens");
  write("a.bin", header(20240520, 1, -1) + ids<uint16_t>(300));
  expect_refused({}, GR_INVALID_ARGUMENT, "its header speaks of -1 tokens");
  write("a.bin", header(20240520, 2, 300) + ids<uint16_t>(300));
  expect_refused({}, GR_INVALID_ARGUMENT, "version 2, wanted 1");
  write("a.bin", header(20240801, 7, 300) + ids<uint32_t>(300));
  expect_refused({{"dtype", "uint16"}}, GR_INVALID_ARGUMENT, "its header says uint32");
  write("a.bin", ids<uint16_t>(300) + "x");
  expect_refused({}, GR_INVALID_ARGUMENT, "no whole number of uint16");
  expect_refused({{"form", "llmc"}}, GR_INVALID_ARGUMENT, "wanted one of llm.c's numbers");
  write("a.bin", "");
  expect_refused({}, GR_OUT_OF_RANGE, "0 windows");
  write("a.bin", ids<uint16_t>(60));
  expect_refused({}, GR_OUT_OF_RANGE, "64 + 1 tokens");
}

TEST_F(TokensData, NamesATokenBeyondTheVocabulary) {
  write("a.bin", ids<uint16_t>(1000));
  expect_refused({{"vocab", "500"}}, GR_OUT_OF_RANGE, "id 500 at position 500");
}

TEST_F(TokensData, NamesAPatternThatFitsNothing) {
  expect_refused({}, GR_NOT_FOUND, "no file fits");
}

// Read as uint16, a file of uint32 has a zero at every second place: the vocabulary tells.
TEST_F(TokensData, SaysHowAFileWasReadWhenIdsAreTooLarge) {
  write("a.bin", ids<uint32_t>(500, 70000));
  expect_refused({{"vocab", "1000"}}, GR_OUT_OF_RANGE, "read as plain uint16");
  const Instance<gr_data_t> plugin =
      make("a.bin", {{"dtype", "uint32"}, {"vocab", "80000"}, {"block", "8"}});
  EXPECT_EQ(plugin.status(), GR_OK) << plugin.message();
}

TEST_F(TokensData, CrossesNoBorderBetweenShards) {
  write("t_0.bin", ids<uint16_t>(101));
  write("t_1.bin", ids<uint16_t>(51, 1000));
  for (const char* order : {"permuted", "random_windows", "sequential"}) {
    const Instance<gr_data_t> plugin =
        make("t_*.bin", {{"block", "10"}, {"order", order}, {"validation_fraction", "0"}});
    ASSERT_EQ(plugin.status(), GR_OK) << plugin.message();
    for (int64_t index = 0; index < 10; ++index) {
      const testing::Columns batch = columns_of(plugin, train_request(1, index, 4));
      for (size_t k = 0; k < batch.at("tokens").size(); ++k) {
        EXPECT_EQ(batch.at("targets")[k], batch.at("tokens")[k] + 1) << order;
      }
    }
  }
}

// RES-07: 120 windows of one token each batch; the next begins in the second shard.
TEST_F(TokensData, RES07_SequentialOrderGoesOnInTheNextShard) {
  write("t_0.bin", ids<uint16_t>(1001));
  write("t_1.bin", ids<uint16_t>(1001, 2000));
  const Instance<gr_data_t> plugin =
      make("t_*.bin", {{"block", "10"}, {"order", "sequential"}, {"validation_fraction", "0"}});
  ASSERT_EQ(info_of(plugin).train_items, 200);
  EXPECT_EQ(first_tokens(plugin, 1, 120, 121, 1), (std::vector<int64_t>{2200}));
  EXPECT_EQ(first_tokens(plugin, 1, 200, 201, 1), (std::vector<int64_t>{0})) << "the next epoch";
}

TEST_F(TokensData, KnowsAChangedShardByItsIdentity) {
  const auto identity = [&] {
    return std::string(info_of(make("*.bin", {{"block", "10"}})).identity);
  };
  write("a.bin", ids<uint16_t>(1000));
  const std::string before = identity();
  EXPECT_EQ(identity(), before);
  std::string changed = ids<uint16_t>(1000);
  changed[500] = static_cast<char>(changed[500] ^ 1);
  write("a.bin", changed);
  EXPECT_NE(identity(), before);
  write("a.bin", ids<uint16_t>(1000));
  write("b.bin", ids<uint16_t>(1000));
  EXPECT_NE(identity(), before);
}

// RES-01, RES-02: an epoch sees every window once, in an order of its own, wherever it is entered.
TEST_F(TokensData, RES01_EveryEpochSeesEveryWindowOnce) {
  write("a.bin", ids<uint16_t>(101));
  const Instance<gr_data_t> plugin = make("a.bin", {{"block", "10"}, {"validation_fraction", "0"}});
  const std::vector<int64_t> all = first_tokens(plugin, 5, 0, 15, 2);
  std::vector<std::vector<int64_t>> epochs;
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    epochs.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(epoch) * 10,
                        all.begin() + static_cast<std::ptrdiff_t>(epoch + 1) * 10);
    std::vector<int64_t> sorted = epochs.back();
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (std::vector<int64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  const Instance<gr_data_t> later = make("a.bin", {{"block", "10"}, {"validation_fraction", "0"}});
  const std::vector<int64_t> rest = first_tokens(later, 5, 7, 10, 2);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + 14));
}

TEST_F(TokensData, TakesValidationFromFilesOfTheirOwn) {
  write("train_0.bin", ids<uint16_t>(101));
  write("val_0.bin", ids<uint16_t>(51, 1000));
  const Instance<gr_data_t> plugin =
      make("train_*.bin", {{"block", "10"}, {"validation_files", "val_*.bin"}});
  ASSERT_EQ(plugin.status(), GR_OK) << plugin.message();
  EXPECT_EQ(info_of(plugin).train_items, 10);
  EXPECT_EQ(info_of(plugin).validation_items, 5);
  EXPECT_EQ(columns_of(plugin, validation_request(0, 1)).at("tokens")[0], 1000);
}

}  // namespace
}  // namespace gradrack
