// SPDX-License-Identifier: Apache-2.0
// Text for messages.
#include "core/base/text.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

TEST(Text, NearestNameIsNoneWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("adamx", {"sgd", "adamw"}), "adamw");
  EXPECT_EQ(nearest_name("zzzz", {"sgd", "adamw"}), "");
  EXPECT_EQ(did_you_mean("adamx", {"adamw"}), " (did you mean 'adamw'?)");
}

TEST(Text, EditDistanceCountsEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Text, HumanBytesPicksItsUnit) {
  EXPECT_EQ(human_bytes(640), "640 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace gradrack
