// SPDX-License-Identifier: Apache-2.0
// The command line: commands that need no data, and what goes to which stream.
#include "tests/unit/cli/cli_run.hpp"

namespace gradrack {
namespace {

TEST(Cli, VersionAndHelpSucceed) {
  const CliRun version = run_words({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "gradrack 1.0.0\n");
  const CliRun help = run_words({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Exit codes: 0 done"), std::string::npos);
}

TEST(Cli, UnknownCommandNamesTheNearest) {
  const CliRun run = run_words({"trian", "x.yaml"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("unknown command 'trian' (did you mean 'train'?)"), std::string::npos)
      << run.err;
}

TEST(Cli, NoCommandOrAnUnknownOptionIsAUsageError) {
  EXPECT_EQ(run_words({}).code, 2);
  EXPECT_EQ(run_words({"ops", "--nope"}).code, 2);
  EXPECT_EQ(run_words({"train"}).code, 2);
  EXPECT_EQ(run_words({"ops", "--log-format", "xml"}).code, 2);
}

TEST(Cli, ValidateNamesEachPluginOnStdout) {
  const RunFile file(small_run());
  const CliRun run = run_words({"validate", file.path()});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* kind : {"model        gpt", "data         text", "optimizer    adamw",
                           "lr_schedule  constant", "precision    fp32", "scheduler    sequential",
                           "backend      cpu", "backend      reference"}) {
    EXPECT_NE(run.out.find(kind), std::string::npos) << kind << "\n" << run.out;
  }
  EXPECT_NE(run.out.find("is valid\n"), std::string::npos);
  EXPECT_NE(run.err.find("info: default: scheduler: sequential"), std::string::npos) << run.err;
}

TEST(Cli, QuietKeepsDefaultsToItself) {
  const RunFile file(small_run());
  const CliRun run = run_words({"validate", file.path(), "--quiet"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
}

TEST(Cli, JsonLogIsOneObjectALine) {
  const CliRun run = run_words({"--log-format", "json", "validate", "/none.yaml"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(
      run.err.find("{\"event\":\"error\",\"level\":\"error\",\"message\":\"/none.yaml: cannot "
                   "open"),
      0u)
      << run.err;
}

TEST(Cli, SetTakesOneWordEach) {
  const RunFile file(small_run());
  const CliRun run = run_words(
      {"validate", "--set", "run.max_steps=3", "--set", "optimizer.betas=[0.8, 0.9]", file.path()});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Cli, PluginsListShowsKindsAndRefusals) {
  const std::string folder = std::string(GRADRACK_FAULT_DIR) + "/major";
  const CliRun run = run_words({"plugins", "list", "--plugin-path", folder});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("optimizer    adamw"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("major.so: it speaks plugin ABI 2.0..3"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(folder + " (--plugin-path)"), std::string::npos);
}

TEST(Cli, PluginsInspectShowsOptions) {
  const CliRun run = run_words({"plugins", "inspect", "adamw"});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("betas: a list of 2 numbers >= 0 and <= 1; default [0.9, 0.999]"),
            std::string::npos)
      << run.out;
}

TEST(Cli, PluginsInspectReadsALibraryByPath) {
  const std::string path = std::string(GRADRACK_FAULT_DIR) + "/good/good.so";
  const CliRun run = run_words({"plugins", "inspect", path});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("test.good 1.0.0"), std::string::npos);
}

TEST(Cli, PluginsInspectOfNothingNamesTheNearest) {
  const CliRun run = run_words({"plugins", "inspect", "adamx"});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("no plugin 'adamx' (did you mean 'adamw'?)"), std::string::npos)
      << run.err;
}

TEST(Cli, OpsHasAnExampleForEveryOperator) {
  const CliRun run = run_words({"ops"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("gradrack.FusedMatMul"), std::string::npos);
  EXPECT_EQ(run.out.find(" ? "), std::string::npos) << run.out;
}

}  // namespace
}  // namespace gradrack
