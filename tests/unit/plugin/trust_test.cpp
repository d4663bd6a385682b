// SPDX-License-Identifier: Apache-2.0
// Whose files are loaded: owners, modes, and the one flag that allows more. And the digest.
#include "core/plugin/trust.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/exit_codes.hpp"
#include "core/plugin/digest.hpp"

namespace gradrack {
namespace {

constexpr uid_t kMe = 1000;

struct stat facts(mode_t mode, uid_t owner = kMe) {
  struct stat made = {};
  made.st_mode = mode;
  made.st_uid = owner;
  return made;
}

struct stat file(mode_t mode, uid_t owner = kMe) {
  return facts(S_IFREG | mode, owner);
}
struct stat folder(mode_t mode, uid_t owner = kMe) {
  return facts(S_IFDIR | mode, owner);
}

Status judged(const struct stat& of_file, const struct stat& of_folder) {
  return check_trust("/p/a.so", of_file, of_folder, kMe);
}

TEST(Trust, TakesWhatOnlyTheUserOrRootCanWrite) {
  EXPECT_TRUE(judged(file(0755), folder(0755)).ok());
  EXPECT_TRUE(judged(file(0755, 0), folder(0755, 0)).ok());
  EXPECT_TRUE(judged(file(0600), folder(0700)).ok());
}

TEST(Trust, RefusesAFileThatOthersCanWrite) {
  const Status status = judged(file(0757), folder(0755));
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_EQ(status.message(),
            "it can be written by all others (mode 0757): chmod go-w '/p/a.so'; or "
            "--allow-writable-plugins (plugins.allow_writable: true) if you trust whoever can");
  EXPECT_NE(judged(file(0775), folder(0755)).message().find("written by its group (mode 0775)"),
            std::string::npos);
}

TEST(Trust, RefusesAFolderThatOthersCanWrite) {
  EXPECT_NE(judged(file(0755), folder(0777))
                .message()
                .find("its folder /p can be written by its group and all others (mode 0777): chmod "
                      "go-w '/p'"),
            std::string::npos);
  EXPECT_FALSE(judged(file(0755), folder(0775)).ok());
}

TEST(Trust, AStickyFolderProtectsItsFilesButNotAWritableFile) {
  EXPECT_TRUE(judged(file(0755), folder(01777)).ok());
  EXPECT_TRUE(judged(file(0755), folder(01777, 0)).ok());
  EXPECT_FALSE(judged(file(01777), folder(01777)).ok());
}

TEST(Trust, RefusesWhatAnotherUserOwns) {
  EXPECT_NE(judged(file(0755, 4242), folder(0755)).message().find("it belongs to user 4242"),
            std::string::npos);
  EXPECT_NE(judged(file(0755), folder(0755, 4242)).message().find("its folder /p belongs to user"),
            std::string::npos);
}

class TrustedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("gradrack_trust_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    path_ = (folder_ / "a.so").string();
    std::ofstream(path_) << "bytes";
    ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(TrustedFile, IsReadWhole) {
  const Result<std::string> bytes = read_trusted(path_, false);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, "bytes");
}

TEST_F(TrustedFile, WritableFileNeedsTheFlag) {
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_EQ(read_trusted(path_, false).status().code(), GR_FAILED_PRECONDITION);
  EXPECT_TRUE(read_trusted(path_, true).ok());
}

TEST_F(TrustedFile, WritableFolderNeedsTheFlag) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(read_trusted(path_, false).status().code(), GR_FAILED_PRECONDITION);
  EXPECT_TRUE(read_trusted(path_, true).ok());
}

TEST_F(TrustedFile, PipesAndFoldersAreNoLibraries) {
  const std::string pipe = (folder_ / "pipe.so").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_trusted(pipe, false).status().message(),
            "it is no regular file: build it again, or remove it");
  EXPECT_FALSE(read_trusted(folder_.string(), false).ok());
  EXPECT_EQ(read_trusted((folder_ / "none.so").string(), false).status().code(), GR_NOT_FOUND);
}

TEST(Digest, MatchesThePublishedVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, KnowsItsOwnForm) {
  EXPECT_TRUE(is_sha256_hex(sha256_hex("x")));
  EXPECT_FALSE(is_sha256_hex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"));
  EXPECT_FALSE(is_sha256_hex("ba78"));
}

}  // namespace
}  // namespace gradrack
