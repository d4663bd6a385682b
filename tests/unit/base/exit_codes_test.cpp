// SPDX-License-Identifier: Apache-2.0
// Which error leaves the program with which code.
#include "core/base/exit_codes.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

TEST(ExitCodes, NotFoundDependsOnWhatWasLookedFor) {
  EXPECT_EQ(exit_code(not_found("key").in_area(Area::kConfig)), 2);
  EXPECT_EQ(exit_code(not_found("plugin").in_area(Area::kPlugin)), 3);
  EXPECT_EQ(exit_code(not_found("data file")), 4);
}

TEST(ExitCodes, CodesThatSayItAll) {
  EXPECT_EQ(exit_code({}), 0);
  EXPECT_EQ(exit_code(invalid_argument("option")), 2);
  EXPECT_EQ(exit_code(Status(GR_VERSION, "abi")), 3);
  EXPECT_EQ(exit_code(Status(GR_OUT_OF_RANGE, "token")), 4);
  EXPECT_EQ(exit_code(Status(GR_NONFINITE, "loss")), 5);
  EXPECT_EQ(exit_code(internal_error("bug")), 1);
  EXPECT_EQ(exit_code(Status(99, "unknown")), 1);
}

TEST(ExitCodes, ContextKeepsTheArea) {
  EXPECT_EQ(exit_code(not_found("x").in_area(Area::kPlugin).with_context("model")), 3);
}

}  // namespace
}  // namespace gradrack
