// SPDX-License-Identifier: Apache-2.0
// RunFolder: made, tried, reused without loss; and where weights are found again.
#include "core/state/run_folder.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"
#include "core/state/checkpoint.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

const float kOne = 1.0f;
const std::vector<SafetensorsTensor> kTensors = {{"w", GR_FLOAT32, {1}, &kOne}};

TEST(RunFolder, MakesTheFolderAndThoseAbove) {
  const TestFolder folder;
  EventSink events;
  EventRecorder said(events);
  const auto run = RunFolder::prepare(folder.file("a b/mödel"), "metrics.jsonl", events);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a b/mödel")));
  EXPECT_TRUE(std::filesystem::is_empty(run->path()));
  EXPECT_TRUE(said.events().empty());
  EXPECT_EQ(run->metrics_path(), folder.file("a b/mödel") + "/metrics.jsonl");
  EXPECT_EQ(run->checkpoints_path(), run->path() + "/checkpoints");
}

TEST(RunFolder, SavesConfigAndWeights) {
  const TestFolder folder;
  EventSink events;
  const auto run = RunFolder::prepare(folder.path(), "metrics.jsonl", events);
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(run->save_config("run: {}\n").ok());
  ASSERT_TRUE(run->save_weights(kTensors, {{"step", "2"}}).ok());
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"config.yaml", "weights.safetensors"}));
  EXPECT_EQ(read_text(run->config_path()), "run: {}\n");
  const auto file = SafetensorsFile::open(run->weights_path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->metadata().at("step"), "2");
}

TEST(RunFolder, UsedFolderKeepsWhatWasThere) {
  const TestFolder folder;
  EventSink events;
  EventRecorder said(events);
  write_text(folder.file("metrics.jsonl"), "second");
  write_text(folder.file("metrics.1.jsonl"), "first");
  write_text(folder.file("weights.safetensors"), "old");
  write_text(folder.file("notes.txt"), "mine");
  std::filesystem::create_directories(folder.file("checkpoints/step-000001"));
  ASSERT_TRUE(RunFolder::prepare(folder.path(), "metrics.jsonl", events).ok());
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"checkpoints.1", "metrics.1.jsonl", "metrics.2.jsonl",
                                      "notes.txt", "weights.1.safetensors"}));
  EXPECT_EQ(read_text(folder.file("metrics.2.jsonl")), "second");
  ASSERT_EQ(said.of_kind("run_folder_reused").size(), 1u);
  EXPECT_TRUE(contains(said.events()[0].message, "metrics.2.jsonl"));
}

TEST(RunFolder, FileInTheWayIsAnIoErrorOfExitCode4) {
  const TestFolder folder;
  EventSink events;
  write_text(folder.file("out"), "");
  for (const char* path : {"out", "out/run"}) {
    const auto run = RunFolder::prepare(folder.file(path), "metrics.jsonl", events);
    ASSERT_FALSE(run.ok()) << path;
    EXPECT_EQ(run.status().code(), GR_IO);
    EXPECT_EQ(exit_code(run.status()), kExitData);
    EXPECT_TRUE(contains(run.status().message(), folder.file(path)));
    EXPECT_TRUE(contains(run.status().message(), "Not a directory"));
  }
}

TEST(RunFolder, UnwritablePlaceSaysTheSystemsReason) {
  // /proc takes no files, not even from root, whom permissions would not stop.
  EventSink events;
  const auto made = RunFolder::prepare("/proc/gradrack", "metrics.jsonl", events);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), GR_IO);
  EXPECT_TRUE(contains(made.status().message(), "cannot make folder '/proc/gradrack': "));
  const auto there = RunFolder::prepare("/proc", "metrics.jsonl", events);
  ASSERT_FALSE(there.ok());
  EXPECT_EQ(there.status().code(), GR_IO);
  EXPECT_TRUE(contains(there.status().message(), "output folder: cannot write '/proc/.writable'"));
}

TEST(FindWeights, TakesFileThenFinalThenLastCheckpoint) {
  const TestFolder folder;
  EventSink events;
  const auto run = RunFolder::prepare(folder.path(), "metrics.jsonl", events);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(find_weights(folder.path()).status().code(), GR_NOT_FOUND);
  for (const int64_t step : {900, 1000000}) {
    CheckpointContent content;
    content.manifest = {"mine", step, {}, false};
    content.weights = kTensors;
    ASSERT_TRUE(write_checkpoint(run->checkpoints_path(), content).ok());
  }
  ASSERT_TRUE(std::filesystem::create_directory(folder.file("checkpoints/step-2000000")));
  const std::string step = run->checkpoints_path() + "/step-1000000";
  const std::string last = step + "/weights.safetensors";
  EXPECT_EQ(*find_weights(folder.path()), last);
  EXPECT_EQ(*find_weights(step), last);
  EXPECT_EQ(*find_weights(last), last);
  ASSERT_TRUE(run->save_weights(kTensors, {{"step", "999999"}}).ok());
  EXPECT_EQ(*find_weights(folder.path()), last);
  ASSERT_TRUE(run->save_weights(kTensors, {{"step", "1000000"}}).ok());
  EXPECT_EQ(*find_weights(folder.path()), run->weights_path());
}

TEST(FindWeights, SaysWhatIsMissing) {
  const TestFolder folder;
  EXPECT_TRUE(contains(find_weights(folder.file("absent")).status().message(),
                       "no weights at '" + folder.file("absent") + "'"));
  EXPECT_TRUE(contains(find_weights(folder.path()).status().message(),
                       "neither weights.safetensors nor a checkpoint in checkpoints"));
}

}  // namespace
}  // namespace gradrack
