// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disk: whole or refused with the reason, replaced at once, rotated by rule.
#include <gtest/gtest.h>

#include <limits>

#include "core/state/checkpoint_folder.hpp"
#include "tests/unit/state/test_folder.hpp"

namespace gradrack {
namespace {

CheckpointContent content(int64_t step, const float& value, std::optional<double> loss = {},
                          const std::string& run = "mine") {
  CheckpointContent made;
  made.manifest = {run, step, loss, false};
  made.weights = {{"w", GR_FLOAT32, {1}, &value}};
  made.state = {{"w.m", GR_FLOAT32, {1}, &value}};
  made.state_json = "{}\n";
  return made;
}

float value_of(const std::string& path) {
  const auto file = SafetensorsFile::open(path + "/weights.safetensors");
  float value = 0;
  EXPECT_TRUE(file.ok() && file->copy_to("w", GR_FLOAT32, std::vector<int64_t>{1}, &value).ok());
  return value;
}

std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) steps.push_back(entry.step);
  return steps;
}

const float kOne = 1, kTwo = 2;

TEST(Checkpoint, ReadsBackAsWritten) {
  const TestFolder folder;
  const std::string place = folder.file("checkpoints");
  ASSERT_TRUE(write_checkpoint(place, content(7, kOne, 2.5)).ok());
  const auto whole = verify_checkpoint(place + "/step-000007");
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->run_id, "mine");
  EXPECT_EQ(whole->step, 7);
  EXPECT_EQ(whole->eval_loss, 2.5);
  EXPECT_EQ(whole->files.size(), 3u);
  EXPECT_EQ(steps_in(place), (std::vector<int64_t>{7}));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"checkpoints"}));
}

TEST(Checkpoint, CKP07_EachSaveHasItsOwnValues) {
  const TestFolder folder;
  float value = 10;
  for (const int64_t step : {10, 20, 30}) {
    value = static_cast<float>(step);
    ASSERT_TRUE(write_checkpoint(folder.path(), content(step, value)).ok());
  }
  for (const int64_t step : {10, 20, 30}) {
    EXPECT_EQ(value_of(folder.file(checkpoint_name(step))), static_cast<float>(step));
  }
}

TEST(Checkpoint, OneOfTheSameStepIsReplaced) {
  const TestFolder folder;
  ASSERT_TRUE(write_checkpoint(folder.path(), content(1, kOne)).ok());
  ASSERT_TRUE(write_checkpoint(folder.path(), content(1, kTwo)).ok());
  EXPECT_EQ(value_of(folder.file("step-000001")), 2);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"step-000001"}));
}

TEST(Checkpoint, CKP01_DamageIsNamed) {
  const TestFolder folder;
  const std::string path = folder.file("step-000001");
  const auto refused = [&](const std::string& file, const std::string& text,
                           const std::string& part) {
    ASSERT_TRUE(write_checkpoint(folder.path(), content(1, kOne)).ok());
    write_text(path + "/" + file, text);
    const Status status = verify_checkpoint(path).status();
    EXPECT_EQ(status.code(), GR_IO);
    EXPECT_TRUE(contains(status.message(), part));
    EXPECT_TRUE(contains(status.message(), path));
  };
  refused("state.json", "[]\n", "is damaged: its XXH128 is ");
  refused("state.json", "{", "has 1 bytes, its manifest says 3");
  refused("manifest.json", "{}", "is no manifest of a checkpoint");
  refused("manifest.json", "", "is no manifest of a checkpoint");
  std::filesystem::remove(path + "/manifest.json");
  EXPECT_EQ(verify_checkpoint(path).status().code(), GR_NOT_FOUND);
}

TEST(Checkpoint, AManifestDoesNotLeaveItsFolder) {
  const TestFolder folder;
  ASSERT_TRUE(write_checkpoint(folder.path(), content(1, kOne)).ok());
  const std::string manifest = folder.file("step-000001/manifest.json");
  std::string text = read_text(manifest);
  text.replace(text.find("state.json"), 10, "../../x.so");
  write_text(manifest, text);
  EXPECT_TRUE(
      contains(read_manifest(folder.file("step-000001")).status().message(), "no manifest"));
}

TEST(CheckpointFolder, NewestGoodOnePassesOverTheDamaged) {
  const TestFolder folder;
  EventSink events;
  EventRecorder said(events);
  EXPECT_EQ(newest_good_checkpoint(folder.path(), events).status().code(), GR_NOT_FOUND);
  for (const int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(write_checkpoint(folder.path(), content(step, kOne)).ok());
  }
  std::filesystem::remove(folder.file("step-000003/state.safetensors"));
  const auto good = newest_good_checkpoint(folder.path(), events);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(good->manifest.step, 2);
  ASSERT_EQ(said.of_kind("checkpoint_refused").size(), 1u);
  EXPECT_TRUE(contains(said.events()[0].message, "state.safetensors"));
  for (const int64_t step : {1, 2})
    std::filesystem::remove(folder.file(checkpoint_name(step)) + "/state.json");
  EXPECT_EQ(newest_good_checkpoint(folder.path(), events).status().code(), GR_IO);
}

TEST(CheckpointFolder, RotationKeepsTheNewestAndTheBest) {
  const TestFolder folder;
  const RotationRule rule = {"mine", 2, 1};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::optional<double>> losses = {3.0, 1.0, nan, {}, 2.0, 4.0};
  for (size_t k = 0; k < losses.size(); ++k) {
    const int64_t step = static_cast<int64_t>(k) + 1;
    ASSERT_TRUE(write_checkpoint(folder.path(), content(step, kOne, losses[k])).ok());
    ASSERT_TRUE(rotate_checkpoints(folder.path(), rule, step).ok());
  }
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{2, 5, 6}));
  ASSERT_TRUE(rotate_checkpoints(folder.path(), {"mine", 0, 0}, 6).ok());
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{2, 5, 6}));
}

TEST(CheckpointFolder, CKP03_CheckpointsOfOthersAreNeitherCountedNorRemoved) {
  const TestFolder folder;
  ASSERT_TRUE(write_checkpoint(folder.path(), content(1000, kOne, 0.1, "other")).ok());
  std::filesystem::create_directory(folder.file("step-000005"));  // of nobody
  for (const int64_t step : {10, 20}) {
    ASSERT_TRUE(write_checkpoint(folder.path(), content(step, kOne, 1.0)).ok());
    ASSERT_TRUE(rotate_checkpoints(folder.path(), {"mine", 1, 0}, step).ok());
  }
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{5, 20, 1000}));
}

TEST(CheckpointFolder, WhatAKillLeftIsRemovedAndWhatIsLaterSetAside) {
  const TestFolder folder;
  const std::string place = folder.file("checkpoints");
  for (const int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(write_checkpoint(place, content(step, kOne)).ok());
  }
  std::filesystem::create_directory(place + "/.tmp-step-000004-77");
  remove_unfinished(place);
  EXPECT_FALSE(std::filesystem::exists(place + "/.tmp-step-000004-77"));
  EXPECT_EQ(*set_later_aside(place, 1), folder.file("checkpoints.1"));
  EXPECT_EQ(steps_in(place), (std::vector<int64_t>{1}));
  EXPECT_EQ(steps_in(folder.file("checkpoints.1")), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(*set_later_aside(place, 1), "");
}

}  // namespace
}  // namespace gradrack
