// SPDX-License-Identifier: Apache-2.0
// A folder of plugin libraries for one test: copies of the build's, removed at its end.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/plugin/describe.hpp"
#include "core/plugin/trust.hpp"

namespace gradrack {

class PluginFolder {
 public:
  /// `name` may hold blanks and other letters.
  explicit PluginFolder(const std::string& name = "plugins") {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            ("gradrack_" + std::string(info->test_suite_name()) + "_" + info->name() + "_" +
             std::to_string(::getpid()));
    folder_ = root_ / name;
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(folder_);
    (void)::chmod(root_.c_str(), 0755);
    (void)::chmod(folder_.c_str(), 0755);
  }
  ~PluginFolder() { std::filesystem::remove_all(root_); }
  PluginFolder(const PluginFolder&) = delete;
  PluginFolder& operator=(const PluginFolder&) = delete;

  std::string path(const std::string& file = "") const {
    return file.empty() ? folder_.string() : (folder_ / file).string();
  }
  std::string root(const std::string& file) const { return (root_ / file).string(); }

  /// Copies a library of tests/fault to `file`; its path comes back.
  std::string add(const std::string& fault, const std::string& file) const {
    const std::string from = std::string(GRADRACK_FAULT_DIR) + "/" + fault + "/" + fault + ".so";
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    std::filesystem::copy_file(from, path(file), std::filesystem::copy_options::overwrite_existing);
    (void)::chmod(path(file).c_str(), 0755);
    return path(file);
  }

  /// Writes the manifest that belongs beside a library; `verdict` may promise what it likes.
  Manifest describe(const std::string& file, const Verdict& verdict) const {
    const Result<std::string> bytes = read_trusted(path(file), true);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    const Result<Manifest> manifest = describe_library(path(file), *bytes, verdict);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    write(manifest_path_of(path(file)), manifest_text(*manifest));
    return *manifest;
  }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    (void)::chmod(path.c_str(), 0644);
  }

 private:
  std::filesystem::path root_, folder_;
};

/// What the library `good` offers, as far as the tests ask for it.
inline Verdict good_verdict() {
  Verdict verdict;
  verdict.id = "test.good";
  verdict.version = "1.0.0";
  verdict.offers = {{"lr_schedule", "good", "1.0.0", "for tests"},
                    {"lr_schedule", "counter", "1.0.0", "for tests"}};
  return verdict;
}

}  // namespace gradrack
