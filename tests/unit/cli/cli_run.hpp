// SPDX-License-Identifier: Apache-2.0
// Runs a command line inside the test and keeps what it wrote.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/cli/app.hpp"

namespace gradrack {

struct CliRun {
  int code = 0;
  std::string out;
  std::string err;
};

inline CliRun run_words(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"gradrack"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  CliRun run;
  run.code = run_cli(static_cast<int>(argv.size()), argv.data());
  run.out = ::testing::internal::GetCapturedStdout();
  run.err = ::testing::internal::GetCapturedStderr();
  return run;
}

/// A run file under the build's temporary folder, removed at the end of the test.
class RunFile {
 public:
  explicit RunFile(const std::string& text) {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("gradrack_") + info->test_suite_name() + "_" + info->name() + ".yaml"))
                .string();
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~RunFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A run file that is right in everything but what the test changes.
inline std::string small_run(const std::string& extra = "") {
  return "run: {max_steps: 2, batch_size: 2}\n"
         "model: {plugin: gpt, layers: 1, heads: 2, dim: 8}\n"
         "data: {plugin: text, file: data/shakespeare.txt, block: 8}\n"
         "optimizer: {plugin: adamw, lr: 1e-3}\n" +
         extra;
}

}  // namespace gradrack
