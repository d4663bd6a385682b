// SPDX-License-Identifier: Apache-2.0
// Manifests and locks from the command line, and the folders that are never searched.
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "tests/unit/cli/cli_run.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class PluginFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("gradrack_" + std::string(info->name()) + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    library_ = (folder_ / "good.so").string();
    fs::copy_file(fs::path(GRADRACK_FAULT_DIR) / "good" / "good.so", library_);
    ASSERT_EQ(::chmod(library_.c_str(), 0755), 0);
    run_ = (folder_ / "run.yaml").string();
    lock_ = (folder_ / "plugins.lock").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A run file that wants the plugin `good` of the folder, and trains on a text of its own.
  void write_run(const std::string& extra = "") {
    const std::string text = (folder_ / "text.txt").string();
    std::ofstream file(text);
    for (int k = 0; k < 100; ++k) file << "number " << k << " of a hundred lines\n";
    std::string run = small_run("lr_schedule: {plugin: good}\n" + extra);
    const std::string usual = "data/shakespeare.txt";
    run.replace(run.find(usual), usual.size(), text);
    std::ofstream(run_) << run;
  }
  CliRun gradrack(std::vector<std::string> words) {
    words.insert(words.end(), {"--plugin-path", folder_.string(), "--quiet"});
    return run_words(words);
  }

  fs::path folder_;
  std::string library_, run_, lock_;
};

TEST_F(PluginFiles, ManifestIsWrittenBesideTheLibraryAndFound) {
  const CliRun run = gradrack({"plugins", "manifest", library_});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string text = read(folder_ / "good.plugin.yaml");
  EXPECT_NE(text.find("id: \"test.good\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("abi: {major: 1, min: 0, max: 1}\n"), std::string::npos) << text;
  EXPECT_NE(text.find("threading: none\n"), std::string::npos) << text;
  EXPECT_NE(text.find("- {kind: lr_schedule, name: \"good\", version: \"1.0.0\""),
            std::string::npos)
      << text;
  const CliRun list = gradrack({"plugins", "list"});
  EXPECT_NE(list.out.find("lr_schedule  good"), std::string::npos) << list.out;
}

TEST_F(PluginFiles, LibraryChangedAfterItsManifestIsRefused) {
  write_run();
  ASSERT_EQ(gradrack({"plugins", "manifest", library_}).code, 0);
  EXPECT_EQ(gradrack({"validate", run_}).code, 0);
  std::ofstream(library_, std::ios::app) << "x";
  const CliRun run = gradrack({"validate", run_});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(
      run.err.find("run.yaml:5:23: lr_schedule plugin 'good': " + library_ + ": its SHA-256 is "),
      std::string::npos)
      << run.err;
}

TEST_F(PluginFiles, LockBesideTheRunFileIsHeldTo) {
  write_run();
  const CliRun locked = gradrack({"plugins", "lock", run_});
  ASSERT_EQ(locked.code, 0) << locked.err;
  EXPECT_NE(read(lock_).find("file: \"good.so\""), std::string::npos);
  EXPECT_NE(read(lock_).find("file: \"gradrack_optimizer_adamw.so\""), std::string::npos);
  EXPECT_EQ(gradrack({"validate", run_}).code, 0);
  EXPECT_EQ(gradrack({"plugins", "verify", run_}).code, 0);

  std::ofstream(library_, std::ios::app) << "x";
  const CliRun refused = gradrack({"validate", run_});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find(lock_ + " wants "), std::string::npos) << refused.err;
  const CliRun verified = gradrack({"plugins", "verify", run_});
  EXPECT_EQ(verified.code, 3);
  EXPECT_NE(verified.out.find("WRONG good.so (test.good 1.0.0): "), std::string::npos)
      << verified.out;

  ASSERT_EQ(gradrack({"plugins", "lock", run_}).code, 0);
  EXPECT_EQ(gradrack({"validate", run_}).code, 0);
}

TEST_F(PluginFiles, LockNamedByTheRunFileIsHeldTo) {
  const std::string other = (folder_ / "other.lock").string();
  std::ofstream(other) << "plugins: []\n";
  write_run("plugins: {lock: " + other + "}\n");
  const CliRun run = gradrack({"validate", run_});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("it is not listed in " + other), std::string::npos) << run.err;
}

TEST_F(PluginFiles, BrokenLockIsACaseForTheUser) {
  write_run();
  std::ofstream(lock_) << "plugins: [{id: 1}]\n";
  const CliRun run = gradrack({"validate", run_});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find(lock_ + ":1:11: plugins.0.file: missing"), std::string::npos) << run.err;
}

TEST_F(PluginFiles, VerifyWithoutALockSaysHowToMakeOne) {
  write_run();
  const CliRun run = gradrack({"plugins", "verify", run_});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("there is no plugins.lock beside " + run_), std::string::npos) << run.err;
}

TEST_F(PluginFiles, VerifyNamesWhatIsGone) {
  write_run();
  ASSERT_EQ(gradrack({"plugins", "lock", "--file", lock_}).code, 0);
  fs::remove(library_);
  const CliRun run = gradrack({"plugins", "verify", "--file", lock_});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.out.find("WRONG good.so (test.good 1.0.0): not found in the folders searched"),
            std::string::npos)
      << run.out;
}

TEST_F(PluginFiles, WritableFolderNeedsTheFlagOrTheKey) {
  write_run();
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const CliRun refused = gradrack({"validate", run_});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("can be written by its group and all others"), std::string::npos);
  EXPECT_EQ(gradrack({"validate", run_, "--allow-writable-plugins"}).code, 0);
  EXPECT_EQ(gradrack({"validate", run_, "--set", "plugins.allow_writable=true"}).code, 0);
}

TEST_F(PluginFiles, TheFoldersOfTheRunItsModelAndItsCheckpointAreNeverSearched) {
  write_run("checkpoint: {interval: 1}\n");
  const fs::path before = fs::current_path();
  const auto refused = [&](const std::vector<std::string>& words) {
    const CliRun run = run_words(words);
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_NE(run.err.find("lr_schedule plugin 'good' not found"), std::string::npos) << run.err;
  };
  fs::current_path(folder_);  // the current folder, which is also the run file's
  refused({"validate", "run.yaml"});
  refused({"train", "run.yaml", "--set", "run.output=."});
  refused({"eval", "run.yaml", "--set", "run.output=.", "--checkpoint", "."});
  fs::current_path(before);
  refused({"validate", run_});
  refused({"eval", run_, "--checkpoint", folder_.string()});
  EXPECT_EQ(run_words({"validate", run_, "--plugin-path", folder_.string()}).code, 0);
}

TEST_F(PluginFiles, PLG10_FolderWithBlanksAndOtherLettersWorksAllTheWay) {
  const fs::path folder = folder_ / "plug ins m\u00f6del \u6a21";
  fs::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  fs::rename(library_, folder / "m\u00f6del \u6a21.so");
  run_ = (folder / "run.yaml").string();
  write_run("backend: {plugin: reference}\n");
  const std::string output = (folder / "out put").string();
  const CliRun run = run_words({"train", run_, "--plugin-path", folder.string(), "--set",
                                "run.output=" + output, "--log-format", "json"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(fs::exists(fs::path(output) / "weights.safetensors"));
  const CliRun eval = run_words({"eval", run_, "--plugin-path", folder.string(), "--checkpoint",
                                 output, "--set", "run.eval_batches=1"});
  EXPECT_EQ(eval.code, 0) << eval.err;
  const CliRun list = run_words({"plugins", "inspect", "good", "--plugin-path", folder.string()});
  EXPECT_NE(list.out.find("library: " + (folder / "m\u00f6del \u6a21.so").string()),
            std::string::npos)
      << list.out;
}

}  // namespace
}  // namespace gradrack
