// SPDX-License-Identifier: Apache-2.0
// Traced steps of real runs: their parts add up, they change no bit, their files hold them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/exec/timeline.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

using Json = nlohmann::json;

class TracedRunTest : public testing::TrainerFixture {
 protected:
  static constexpr int64_t kFirst = 2, kSteps = 6;

  static std::vector<std::string> traced(std::vector<std::string> sets) {
    sets.insert(sets.end(), {"run.max_steps=9", "run.eval_interval=4", "checkpoint.interval=5",
                             "run.log_interval=1", "metrics.trace_steps=6"});
    return sets;
  }

  static std::vector<Json> records(Trainer& trainer) {
    std::vector<Json> out;
    std::ifstream file(folder_of(trainer) / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      Json record = Json::parse(line);
      if (record.contains("time/step_ms")) out.push_back(std::move(record));
    }
    return out;
  }

  static Json trace(Trainer& trainer) {
    std::ifstream file(folder_of(trainer) / "trace.json");
    return Json::parse(file)["traceEvents"];
  }

  /// Share of the step that its parts miss, or have too much.
  static double gap(const Json& record) {
    double sum = 0;
    for (const auto& [name, value] : record.items()) {
      const bool part = name.starts_with("time/") && name.find("_ms/") == std::string::npos;
      if (part && name != "time/step_ms") sum += value.get<double>();
    }
    const double step = record["time/step_ms"];
    return std::abs(sum - step) / step;
  }

  static void expect_parts_add_up(Trainer& trainer) {
    const int64_t start = host_clock_ns();
    ASSERT_TRUE(trainer.run().ok());
    const double whole_ms = static_cast<double>(host_clock_ns() - start) / 1e6;
    const std::vector<Json> steps = records(trainer);
    ASSERT_EQ(steps.size(), static_cast<size_t>(kSteps));
    double sum_ms = 0;
    for (size_t k = 0; k < steps.size(); ++k) {
      EXPECT_EQ(steps[k]["step"], kFirst + static_cast<int64_t>(k));
      EXPECT_LE(gap(steps[k]), 0.01) << steps[k];
      for (const char* name : {"forward", "input_gradient", "weight_gradient", "update", "idle",
                               "data", "scalars", "read", "log"}) {
        EXPECT_GT(steps[k]["time/" + std::string(name) + "_ms"], 0) << name << steps[k];
      }
      sum_ms += steps[k]["time/step_ms"].get<double>();
    }
    EXPECT_LE(sum_ms, whole_ms);
    EXPECT_GT(steps[2]["time/evaluate_ms"], 0);  // step 4
    EXPECT_GT(steps[3]["time/save_ms"], 0);      // step 5
    EXPECT_EQ(steps[0]["time/evaluate_ms"], 0);
    EXPECT_EQ(steps[0]["time/save_ms"], 0);
  }
};

TEST_F(TracedRunTest, PartsAddUpToTheStepOnOneStream) {
  const auto made = trainer(traced({"run.accumulate_steps=2"}));
  ASSERT_NE(made, nullptr);
  expect_parts_add_up(*made);
}

TEST_F(TracedRunTest, PartsAddUpWithTwoDevices) {
  const auto made = trainer(traced({testing::emulated("memory: device, refuse: Mul")}));
  ASSERT_NE(made, nullptr);
  expect_parts_add_up(*made);
  EXPECT_GT(records(*made)[0]["time/copy_ms"], 0);
}

// By a clock of the test's own, which sees a step end with its event. What lies between is the
// event of the step before.
TEST_F(TracedRunTest, WallTimeOfAStepIsTheTimeBetweenSteps) {
  std::vector<int64_t> ends;
  const auto made = trainer({"run.max_steps=12", "metrics.trace_steps=11", "model.dim=64",
                             "model.layers=3", "data.block=64", "run.batch_size=4"});
  ASSERT_NE(made, nullptr);
  last_session().events.add([&ends](const Event& event) {
    if (event.kind == "step_time") ends.push_back(host_clock_ns());
  });
  ASSERT_TRUE(made->run().ok());
  const std::vector<Json> steps = records(*made);
  ASSERT_EQ(steps.size(), ends.size());
  std::vector<double> shares;
  for (size_t k = 1; k < steps.size(); ++k) {
    const double between_ms = static_cast<double>(ends[k] - ends[k - 1]) / 1e6;
    shares.push_back(steps[k]["time/step_ms"].get<double>() / between_ms);
    EXPECT_LE(shares.back(), 1);
  }
  std::nth_element(shares.begin(), shares.begin() + 5, shares.end());
  EXPECT_GT(shares[5], 0.9);
}

TEST_F(TracedRunTest, TraceHasEveryTaskOfEveryTracedStep) {
  const auto made = trainer(traced({"run.accumulate_steps=2"}));
  ASSERT_NE(made, nullptr);
  ASSERT_TRUE(made->run().ok());
  size_t tasks = 0, phases = 0;
  for (const Programs::NamedPlan& each : made->programs().plans()) {
    if (each.name.find("evaluation") == std::string::npos) tasks += each.plan->tasks.size();
  }
  size_t drawn = 0;
  std::string last_phase;
  for (const Json& event : trace(*made)) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["args"]["step"], kFirst);
    EXPECT_LT(event["args"]["step"], kFirst + kSteps);
    EXPECT_GE(event["dur"], 0);
    event["cat"] == "host" ? ++phases : ++drawn;
    if (event["cat"] == "host") {
      EXPECT_NE(event["name"], std::exchange(last_phase, event["name"]));
    }
  }
  EXPECT_EQ(drawn, tasks * kSteps);
  EXPECT_GE(phases, 8u * kSteps);
}

TEST_F(TracedRunTest, PartsAddUpOnStreamsWithAThreadEach) {
  const auto made =
      trainer(traced({"scheduler={plugin: shuffled, streams: 3, auto_off: false, profile: false}",
                      testing::emulated("memory: device, threaded: true")}));
  ASSERT_NE(made, nullptr);
  expect_parts_add_up(*made);
  EXPECT_TRUE(records(*made)[0].contains("time/idle_ms/emulated.2"));
}

TEST_F(TracedRunTest, BackendThatCannotTimeIsNamedAndTrainedWithUntraced) {
  const auto made = trainer(traced({testing::emulated("extensions: false")}));
  ASSERT_NE(made, nullptr);
  const EventRecorder events(last_session().events);
  ASSERT_TRUE(made->run().ok());
  EXPECT_EQ(made->steps(), 9);
  const std::vector<Event> told = events.of_kind("trace_unsupported");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].message.find("backend emulated"), std::string::npos) << told[0].message;
  EXPECT_TRUE(records(*made).empty());
  EXPECT_FALSE(std::filesystem::exists(folder_of(*made) / "trace.json"));
}

TEST_F(TracedRunTest, TracingChangesNoBit) {
  const auto plain = trainer({"run.max_steps=9"});
  const auto watched = trainer(traced({}));
  ASSERT_TRUE(plain->run().ok());
  ASSERT_TRUE(watched->run().ok());
  EXPECT_EQ(parameters(*plain), parameters(*watched));
}

}  // namespace
}  // namespace gradrack
