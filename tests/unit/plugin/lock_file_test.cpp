// SPDX-License-Identifier: Apache-2.0
// plugins.lock: what is read, what is let through.
#include "core/plugin/lock_file.hpp"

#include <gtest/gtest.h>

#include "core/base/exit_codes.hpp"
#include "core/plugin/digest.hpp"

namespace gradrack {
namespace {

LockFile sample() {
  return {"/r/plugins.lock",
          {{"org.b", "b.so", sha256_hex("b"), "2"}, {"org.a", "a.so", sha256_hex("a"), "1"}}};
}

TEST(LockFile, ReadsBackWhatIsWritten) {
  const Result<LockFile> lock = parse_lock_file(lock_file_text(sample()), "/r/plugins.lock");
  ASSERT_TRUE(lock.ok()) << lock.status().message();
  ASSERT_EQ(lock->plugins.size(), 2u);
  EXPECT_EQ(lock->plugins[0].file, "a.so");  // sorted
  EXPECT_EQ(lock->plugins[1].id, "org.b");
  EXPECT_EQ(lock_file_text(*lock), lock_file_text(sample()));
}

TEST(LockFile, AnEmptyOneLetsNothingThrough) {
  const Result<LockFile> lock = parse_lock_file(lock_file_text({"x", {}}), "x");
  ASSERT_TRUE(lock.ok()) << lock.status().message();
  EXPECT_FALSE(lock->check("/p/a.so", sha256_hex("a")).ok());
}

TEST(LockFile, LetsThroughWhatItLists) {
  EXPECT_TRUE(sample().check("/elsewhere/a.so", sha256_hex("a")).ok());
  EXPECT_TRUE(sample().check_id("/elsewhere/a.so", "org.a").ok());
}

TEST(LockFile, RefusesOtherBytesAndNamesBothDigests) {
  const Status status = sample().check("/p/a.so", sha256_hex("changed"));
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_EQ(status.message(), "its SHA-256 is " + sha256_hex("changed") +
                                  ", /r/plugins.lock wants " + sha256_hex("a") +
                                  ": if that is meant, `gradrack plugins lock` writes the lock "
                                  "again; else put the right file back");
}

TEST(LockFile, RefusesWhatItDoesNotList) {
  const Status status = sample().check("/p/c.so", sha256_hex("c"));
  EXPECT_EQ(exit_code(status), kExitPlugin);
  EXPECT_EQ(status.message().find("it is not listed in /r/plugins.lock"), 0u);
}

TEST(LockFile, RefusesAnotherId) {
  EXPECT_EQ(sample().check_id("/p/a.so", "org.z").message().find("its id is 'org.z', "), 0u);
}

TEST(LockFile, FaultsHaveTheirPlace) {
  const auto fault = [](const std::string& text) {
    return parse_lock_file(text, "l").status().message();
  };
  EXPECT_EQ(fault("plugins:\n  - {id: a, file: a.so}\n"), "l:2:5: plugins.0.sha256: missing");
  EXPECT_EQ(fault("plugins:\n  - {id: a, file: d/a.so, sha256: x}\n"),
            "l:2:35: plugins.0.sha256: wanted 64 lower-case hexadecimal digits");
  EXPECT_EQ(fault("plugin: []\n"), "l:1:1: plugins: missing");
  const std::string line = "  - {id: a, file: a.so, sha256: " + sha256_hex("") + "}\n";
  EXPECT_EQ(fault("plugins:\n" + line + line), "l:3:19: plugins.1.file: 'a.so' is listed twice");
  EXPECT_EQ(exit_code(parse_lock_file("x", "l").status()), kExitUsage);
}

}  // namespace
}  // namespace gradrack
