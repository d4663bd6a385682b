// SPDX-License-Identifier: Apache-2.0
// Orders by measured times: the bits of a run do not depend on them, and what is kept of them is
// found again, by the run that it is of alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class TaskTimesOfARun : public testing::TrainerFixture {
 protected:
  struct Ran {
    std::vector<std::byte> bytes;  // of all that persists, after some steps
    std::vector<double> losses;
    std::vector<std::string> orders;  // events "schedule"
    std::vector<std::string> cache;   // events "schedule_cache"
    std::vector<std::string> fallbacks;
    size_t plans = 0;
    size_t most_lanes = 0;
  };

  void SetUp() override {
    TrainerFixture::SetUp();
    cache_ = fs::temp_directory_path() /
             ("gradrack_times_" + std::to_string(getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override {
    fs::remove_all(cache_);
    TrainerFixture::TearDown();
  }

  std::string scheduler(const std::string& more = "", int streams = 3) const {
    return "scheduler={plugin: shuffled, streams: " + std::to_string(streams) +
           ", auto_off: false, cache: \"" + cache_.string() + "\"" + more + "}";
  }

  /// Streams with a thread each.
  static std::string backend() { return testing::emulated("memory: host, threaded: true"); }

  /// A run of the stems, whose plans differ by place in the step and by objectives.
  Ran run(const std::string& scheduler, Sets sets = {}) {
    sets.push_back(scheduler);
    sets.push_back(backend());
    sets.push_back("run.accumulate_steps=2");
    sets.push_back("data.point_every=3");
    Ran ran;
    const std::unique_ptr<Session> session = stems_session(sets);
    if (session == nullptr) return ran;
    session->events.add([&ran](const Event& event) {
      if (event.kind == "schedule") ran.orders.push_back(event.message);
      if (event.kind == "schedule_cache") ran.cache.push_back(event.message);
      if (event.kind == "fallback") ran.fallbacks.push_back(event.message);
    });
    const auto trainer = Trainer::make(*session);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return ran;
    const Programs& programs = (*trainer)->programs();
    for (const auto& each : programs.plans()) {
      ++ran.plans;
      ran.most_lanes = std::max(ran.most_lanes, each.plan->schedule.lanes.size());
    }
    EXPECT_EQ(programs.planned_bytes(), programs.allocated_bytes());
    for (int k = 0; k < 5; ++k) {
      const auto report = (*trainer)->step();
      EXPECT_TRUE(report.ok()) << report.status().message();
      ran.losses.push_back(report.ok() ? report->loss : 0);
    }
    ran.bytes = parameters(**trainer);
    return ran;
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    if (!fs::exists(cache_)) return out;
    for (const auto& entry : fs::directory_iterator(cache_)) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }

  fs::path cache_;
};

void expect_all(const std::vector<std::string>& texts, size_t count, const std::string& part) {
  EXPECT_EQ(texts.size(), count);
  for (const std::string& text : texts) {
    EXPECT_NE(text.find(part), std::string::npos) << text << " lacks: " << part;
  }
}

TEST_F(TaskTimesOfARun, MeasuredKeptAndEstimatedTimesGiveTheSameBits) {
  const Ran estimated = run(scheduler(", profile: false"));
  EXPECT_TRUE(estimated.orders.empty());
  EXPECT_TRUE(files().empty());
  const Ran cold = run(scheduler());
  expect_all(cold.orders, cold.plans, "; task times measured now");
  expect_all(cold.orders, cold.plans, ", measured ");
  EXPECT_EQ(files().size(), cold.plans);
  const Ran warm = run(scheduler());
  expect_all(warm.orders, warm.plans, "; task times from " + cache_.string());
  EXPECT_GT(cold.plans, 2u);
  EXPECT_EQ(cold.most_lanes, 3u);
  for (const Ran* other : {&cold, &warm}) {
    EXPECT_TRUE(other->bytes == estimated.bytes);
    EXPECT_EQ(other->losses, estimated.losses);
    EXPECT_TRUE(other->cache.empty());
  }
}

TEST_F(TaskTimesOfARun, OneStreamIsNotTimed) {
  const Ran ran = run(scheduler("", 1));
  EXPECT_TRUE(ran.orders.empty());
  EXPECT_TRUE(files().empty());
}

TEST_F(TaskTimesOfARun, WhyAnOrderIsNotTakenIsToldOnceOfThePlanThatRuns) {
  std::string with_auto_off = scheduler();
  with_auto_off.replace(with_auto_off.find("auto_off: false"), 15, "auto_off: true");
  ASSERT_GT(run(with_auto_off).plans, 0u);
  for (const fs::path& file : files()) {
    auto root = nlohmann::json::parse(content(file));
    // A wait takes longer than what it saves.
    for (auto& task : root["tasks"]) task["cost_ns"] = 1;
    std::ofstream(file) << root.dump();
  }
  const Ran ran = run(with_auto_off);
  expect_all(ran.fallbacks, ran.plans, ": program order on one stream instead: ");
  EXPECT_EQ(ran.most_lanes, 1u);
  expect_all(ran.orders, ran.plans, "program order on 1 stream, predicted ");
}

TEST_F(TaskTimesOfARun, AFileSaysWhatWasMeasuredAndWhatFollowed) {
  ASSERT_GT(run(scheduler()).plans, 0u);
  for (const fs::path& file : files()) {
    const auto root = nlohmann::json::parse(content(file));
    const size_t count = root.at("tasks").size();
    EXPECT_EQ(root.at("order").size(), count);
    EXPECT_EQ(root.at("scheduler"), "shuffled");
    int64_t sum = 0;
    for (const auto& task : root.at("tasks")) {
      EXPECT_FALSE(task.at("name").get<std::string>().empty());
      EXPECT_LT(task.at("stream").get<int>(), 3);
      sum += task.at("cost_ns").get<int64_t>();
    }
    EXPECT_EQ(root.at("sequential_ns").get<int64_t>(), sum);
    EXPECT_LE(root.at("predicted_ns").get<int64_t>(), 2 * sum + 1'000'000);
    EXPECT_GT(root.at("measured_ns").get<int64_t>(), 0);
    EXPECT_GT(root.at("program_order_ns").get<int64_t>(), 0);
  }
}

TEST_F(TaskTimesOfARun, AnOrderThatIsFastOnPaperAloneIsPutAside) {
  std::string with_auto_off = scheduler();
  with_auto_off.replace(with_auto_off.find("auto_off: false"), 15, "auto_off: true");
  const Ran first = run(with_auto_off);
  struct Case {
    int64_t measured_ns;
    bool taken;
  };
  for (const Case& c : {Case{990, false}, {2000, false}, {970, true}}) {
    for (const fs::path& file : files()) {
      auto root = nlohmann::json::parse(content(file));
      // Tasks of a second each: there is much to gain.
      for (auto& task : root["tasks"]) task["cost_ns"] = 1'000'000'000;
      root["measured_ns"] = c.measured_ns;
      root["program_order_ns"] = 1000;
      std::ofstream(file) << root.dump();
    }
    const Ran ran = run(with_auto_off);
    EXPECT_EQ(ran.most_lanes, c.taken ? 3u : 1u) << c.measured_ns;
    EXPECT_TRUE(ran.bytes == first.bytes);
    size_t told = 0;
    for (const std::string& text : ran.fallbacks) {
      told += text.find("scheduler shuffled: no gain measured: 0.00") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(told > 0, !c.taken) << c.measured_ns;
  }
}

TEST_F(TaskTimesOfARun, ADamagedFileIsPassedOverAndWrittenAgain) {
  const Ran cold = run(scheduler());
  const std::vector<fs::path> kept = files();
  ASSERT_GT(kept.size(), 1u);
  for (const uintmax_t left : {uintmax_t{0}, fs::file_size(kept[0]) / 2}) {
    fs::resize_file(kept[0], left);
    const Ran again = run(scheduler());
    ASSERT_EQ(again.cache.size(), 1u) << left;
    EXPECT_NE(again.cache[0].find(kept[0].string() + " are passed over: it is damaged; the tasks "
                                                     "are timed again"),
              std::string::npos)
        << again.cache[0];
    EXPECT_EQ(again.orders.size(), again.plans);
    EXPECT_TRUE(again.bytes == cold.bytes);
    EXPECT_TRUE(nlohmann::json::accept(content(kept[0])));
  }
}

TEST_F(TaskTimesOfARun, AFileOfAnotherPlanIsNotBelieved) {
  const Ran cold = run(scheduler());
  const std::vector<fs::path> kept = files();
  ASSERT_GT(kept.size(), 1u);
  fs::copy_file(kept[1], kept[0], fs::copy_options::overwrite_existing);
  const Ran again = run(scheduler());
  ASSERT_EQ(again.cache.size(), 1u);
  EXPECT_NE(again.cache[0].find("it is of another plan"), std::string::npos) << again.cache[0];
  EXPECT_TRUE(again.bytes == cold.bytes);
  EXPECT_NE(content(kept[0]), content(kept[1]));
}

TEST_F(TaskTimesOfARun, AFileOfOtherTasksOrCostsThatCannotBeIsNotBelieved) {
  ASSERT_GT(run(scheduler()).plans, 0u);
  ASSERT_FALSE(files().empty());
  const fs::path file = files()[0];
  const auto right = nlohmann::json::parse(content(file));
  struct Edit {
    const char* says;
    void (*make)(nlohmann::json& root);
  };
  const Edit edits[] = {
      {"is of another format", [](nlohmann::json& root) { root["format"] = 99; }},
      {"tasks, the plan has", [](nlohmann::json& root) { root["tasks"].erase(0); }},
      {"its task 0 is nonsense, the plan's is",
       [](nlohmann::json& root) { root["tasks"][0]["name"] = "nonsense"; }},
      {"the cost of task 0 is -1 ns",
       [](nlohmann::json& root) { root["tasks"][0]["cost_ns"] = -1; }},
      {"the cost of task 0 is no number",
       [](nlohmann::json& root) { root["tasks"][0]["cost_ns"] = 0.5; }},
      {"the cost of task 0 is 9000000000000000000 ns",
       [](nlohmann::json& root) { root["tasks"][0]["cost_ns"] = INT64_C(9000000000000000000); }},
      {"it is damaged", [](nlohmann::json& root) { root.erase("measured_ns"); }},
  };
  for (const Edit& edit : edits) {
    nlohmann::json wrong = right;
    edit.make(wrong);
    std::ofstream(file) << wrong.dump();
    const Ran again = run(scheduler());
    ASSERT_EQ(again.cache.size(), 1u) << edit.says;
    EXPECT_NE(again.cache[0].find(edit.says), std::string::npos) << again.cache[0];
  }
}

TEST_F(TaskTimesOfARun, AnotherKeyHasFilesOfItsOwn) {
  const Ran first = run(scheduler());
  const size_t kept = files().size();
  const Ran other = run(scheduler(", seed: 7"));
  expect_all(other.orders, other.plans, "; task times measured now");
  EXPECT_EQ(files().size(), kept + other.plans);
  EXPECT_TRUE(other.bytes == first.bytes);
}

TEST_F(TaskTimesOfARun, AFolderThatCannotBeWrittenIsAnEventAndNoError) {
  std::ofstream(cache_) << "a file where the folder should be";
  const Ran ran = run(scheduler());
  ASSERT_EQ(ran.cache.size(), 1u) << "said once";
  EXPECT_NE(ran.cache[0].find("task times are not kept in " + cache_.string()), std::string::npos);
  EXPECT_NE(ran.cache[0].find("scheduler.cache"), std::string::npos);
  expect_all(ran.orders, ran.plans, "; task times measured now");
}

TEST_F(TaskTimesOfARun, WithoutAFolderNothingIsKept) {
  cache_.clear();
  const Ran ran = run(scheduler());
  EXPECT_TRUE(ran.cache.empty());
  expect_all(ran.orders, ran.plans, "; task times measured now");
}

TEST_F(TaskTimesOfARun, TrainersOfOneMachineMeasureOnce) {
  const Sets sets = {scheduler(), backend()};
  const std::unique_ptr<Session> session = stems_session(sets);
  ASSERT_NE(session, nullptr);
  auto machine = make_machine(*session);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const auto first = stems_trainer(sets, *machine);
  ASSERT_NE(first, nullptr);
  const size_t kept = files().size();
  EXPECT_GT(kept, 0u);
  fs::remove_all(cache_);
  auto second = stems_trainer(sets, *machine);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(files().empty());
  for (const auto& each : second->programs().plans()) EXPECT_TRUE(each.plan->measured);
}

}  // namespace
}  // namespace gradrack
