// SPDX-License-Identifier: Apache-2.0
// Metrics: strict JSON on whole lines, whatever the numbers, the text or the disk.
#include "core/state/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/unit/state/file_size_limit.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::json;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream in(read_text(path));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Metrics, WritesStepTokensAndValuesInOrder) {
  EXPECT_EQ(to_json_line({10, 7680, {{"train/loss", 2.5}, {"lr", 0.001}}}),
            R"({"step":10,"tokens":7680,"train/loss":2.5,"lr":0.001})");
}

TEST(Metrics, KeepsEveryBitOfADouble) {
  const double value = 0.1 + 0.2;
  const Json line = Json::parse(to_json_line({1, 0, {{"x", value}, {"y", 5e-324}}}));
  EXPECT_EQ(line["x"].get<double>(), value);
  EXPECT_EQ(line["y"].get<double>(), 5e-324);
}

TEST(Metrics, RUN05_NonFiniteNumbersBecomeNullWithAFlag) {
  const std::string text = to_json_line(
      {1, 2, {{"train/loss", kNan}, {"grad_norm", kInf}, {"low", -kInf}, {"lr", 1.0}}});
  EXPECT_EQ(text, R"({"step":1,"tokens":2,"train/loss":null,"grad_norm":null,"low":null,"lr":1.0,)"
                  R"("flags":{"train/loss":"nan","grad_norm":"inf","low":"-inf"}})");
}

TEST(Metrics, RUN05_TextWithQuotesLineBreaksAndBrokenUtf8StaysOneStrictLine) {
  const std::string text = to_json_line({1, 0, {}, {{"run", "a \"b\"\nc \xff\xc3("}}});
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json line = Json::parse(text, nullptr, false);
  ASSERT_FALSE(line.is_discarded()) << text;
  EXPECT_EQ(line["run"], "a \"b\"\nc \xef\xbf\xbd\xef\xbf\xbd(");
}

TEST(MetricsFile, RUN05_LinesOfManyThreadsDoNotMix) {
  const TestFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  EventSink events;
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t k = 0; k < 100; ++k) {
        (*file)->record({t, k, {}, {{"text", std::string(500, 'x')}}}, events);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto lines = lines_of(path);
  EXPECT_EQ(lines.size(), 400u);
  for (const std::string& line : lines) ASSERT_TRUE(Json::accept(line)) << line;
}

TEST(MetricsFile, RUN05_CutLastLineIsRepaired) {
  const TestFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  write_text(path, "{\"step\":1}\n{\"step\":2,\"tr");
  EventSink events;
  {
    auto file = MetricsFile::open(path);
    ASSERT_TRUE(file.ok());
    (*file)->record({2, 0, {}}, events);
  }
  EXPECT_EQ(read_text(path), "{\"step\":1}\n{\"step\":2,\"tokens\":0}\n");
}

TEST(MetricsFile, EventsGoToTheSameFileWithoutEchoes) {
  const TestFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  EventSink events;
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.ok());
  events.add([&](const Event& event) { (*file)->record(event); });
  events.emit({"fallback", Level::kWarn, "took \"cpu\""});
  const auto lines = lines_of(path);
  ASSERT_EQ(lines.size(), 1u);
  const Json line = Json::parse(lines[0]);
  EXPECT_EQ(line["event"], "fallback");
  EXPECT_EQ(line["message"], "took \"cpu\"");
}

TEST(MetricsFile, FailedWriteIsSaidOnceAndLeavesWholeLines) {
  const TestFolder folder;
  const std::string path = folder.file("metrics.jsonl");
  EventSink events;
  EventRecorder said(events);
  auto file = MetricsFile::open(path);
  ASSERT_TRUE(file.ok());
  events.add([&](const Event& event) { (*file)->record(event); });
  (*file)->record({1, 0, {}}, events);
  {
    const FileSizeLimit limit(100);  // the second line fits in part
    (*file)->record({2, 0, {}, {{"text", std::string(200, 'x')}}}, events);
    (*file)->record({3, 0, {}, {{"text", std::string(200, 'x')}}}, events);
  }
  ASSERT_EQ(said.of_kind("metrics_error").size(), 1u);
  EXPECT_EQ(said.events()[0].level, Level::kWarn);
  EXPECT_TRUE(contains(said.events()[0].message, "cannot write '" + path + "'"));
  EXPECT_TRUE(contains(said.events()[0].message, "training goes on"));
  (*file)->record({4, 0, {}}, events);
  EXPECT_EQ(read_text(path), "{\"step\":1,\"tokens\":0}\n{\"step\":4,\"tokens\":0}\n");
}

TEST(MetricsFile, NamesAFolderThatIsMissing) {
  const TestFolder folder;
  const auto file = MetricsFile::open(folder.file("no/metrics.jsonl"));
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(contains(file.status().message(), "no/metrics.jsonl': No such file or directory"));
}

}  // namespace
}  // namespace gradrack
