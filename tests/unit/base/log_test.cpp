// SPDX-License-Identifier: Apache-2.0
// What may reach a terminal.
#include "core/base/log.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

TEST(Log, PrintableShowsControlBytes) {
  EXPECT_EQ(printable("a\n\x1b[31mb\x7f"), "a\\x0a\\x1b[31mb\\x7f");
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(Log, WritesOneLineAnEventToStderr) {
  start_logging({LogFormat::kText, false});
  ::testing::internal::CaptureStderr();
  log_event({"fallback", Level::kWarn, "two\nlines"});
  log_event({"default", Level::kInfo, "shown"});
  log_event({"detail", Level::kDebug, "hidden"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: two\\x0alines\ninfo: shown\n");
}

TEST(Log, QuietKeepsWarnings) {
  start_logging({LogFormat::kText, true});
  ::testing::internal::CaptureStderr();
  log_event({"default", Level::kInfo, "hidden"});
  log_event({"fallback", Level::kWarn, "shown"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: shown\n");
}

TEST(Log, JsonIsOneObjectALine) {
  start_logging({LogFormat::kJson, false});
  ::testing::internal::CaptureStderr();
  log_event({"fallback", Level::kWarn, "two\nlines"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "{\"event\":\"fallback\",\"level\":\"warn\",\"message\":\"two\\nlines\"}\n");
}

}  // namespace
}  // namespace gradrack
