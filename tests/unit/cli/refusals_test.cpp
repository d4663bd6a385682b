// SPDX-License-Identifier: Apache-2.0
// Bad input at the program's door: the message and the exit code of each.
#include "tests/unit/cli/cli_run.hpp"

namespace gradrack {
namespace {

CliRun validate(const std::string& text, const std::vector<std::string>& more = {}) {
  const RunFile file(text);
  std::vector<std::string> words = {"validate", file.path(), "--quiet"};
  words.insert(words.end(), more.begin(), more.end());
  CliRun run = run_words(words);
  // Paths differ by machine; what follows does not.
  for (size_t at = run.err.find(file.path()); at != std::string::npos;
       at = run.err.find(file.path())) {
    run.err.replace(at, file.path().size(), "run.yaml");
  }
  return run;
}

std::string fault_folder(const std::string& name) {
  return std::string(GRADRACK_FAULT_DIR) + "/" + name;
}

TEST(Refusal, MissingFile) {
  const CliRun run = run_words({"train", "/nonexistent.yaml"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err,
            "error: /nonexistent.yaml: cannot open the config file: No such file or directory\n");
}

TEST(Refusal, BadYaml) {
  const CliRun run = validate("run: {max_steps: 1\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err.find("error: run.yaml:"), 0u) << run.err;
  EXPECT_NE(run.err.find("not valid YAML"), std::string::npos) << run.err;
}

TEST(Refusal, UnknownKeyOfAPlugin) {
  const CliRun run = validate(small_run(), {"--set", "optimizer.learning_rat=1"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("optimizer.learning_rat: unknown key (did you mean 'lr'?)"),
            std::string::npos)
      << run.err;
}

TEST(Refusal, DuplicateKey) {
  const CliRun run = validate(small_run("optimizer: {plugin: adamw, lr: 2}\n"));
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err,
            "error: run.yaml:5:1: 'optimizer' is given twice: here and on line 4; remove one\n");
}

TEST(Refusal, WrongType) {
  const CliRun run = validate(small_run(), {"--set", "model.layers=two"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("model.layers: got text 'two', wanted a whole number"), std::string::npos)
      << run.err;
}

TEST(Refusal, OutOfRange) {
  const CliRun run = validate(small_run(), {"--set", "optimizer.eps=-1"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("optimizer.eps: got the number -1, wanted a number >= 0"),
            std::string::npos)
      << run.err;
}

TEST(Refusal, UnknownPluginShowsFoldersAndNames) {
  const CliRun run = validate(small_run(), {"--set", "optimizer.plugin=adamx"});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(
      run.err.find("optimizer plugin 'adamx' not found (did you mean 'adamw'?); found of this "
                   "kind: adamw, "),
      std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("(bundled; "), std::string::npos);
}

TEST(Refusal, AbiMajorMismatchIsPartOfTheReason) {
  const CliRun run = validate(
      small_run(), {"--set", "optimizer.plugin=twin", "--plugin-path", fault_folder("major")});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("it speaks plugin ABI 2.0..3, gradrack 1.0.0 speaks 1.0"),
            std::string::npos)
      << run.err;
}

TEST(Refusal, MissingSymbolIsPartOfTheReason) {
  const CliRun run = validate(small_run(), {"--set", "optimizer.plugin=twin", "--plugin-path",
                                            fault_folder("missing_symbol")});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("it uses the symbol 'gradrack_test_nobody_has_this'"), std::string::npos)
      << run.err;
}

TEST(Refusal, MissingDependencyIsPartOfTheReason) {
  const CliRun run = validate(small_run(), {"--set", "optimizer.plugin=twin", "--plugin-path",
                                            fault_folder("missing_library")});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("it needs libfault_needed.so, which was not found"), std::string::npos)
      << run.err;
}

TEST(Refusal, TwoPluginsWithOneName) {
  const CliRun run = validate(
      small_run(), {"--set", "optimizer.plugin=twin", "--plugin-path", fault_folder("twins")});
  EXPECT_EQ(run.code, 3);
  EXPECT_NE(run.err.find("optimizer plugin 'twin' is offered twice, by "), std::string::npos)
      << run.err;
}

TEST(Refusal, ClashOfANameThatNobodyAsksForStopsNothing) {
  const CliRun run = validate(small_run(), {"--plugin-path", fault_folder("twins")});
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace gradrack
