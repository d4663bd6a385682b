// SPDX-License-Identifier: Apache-2.0
// Keys: every part counts, differences name the part and both values, contents decide the hash.
#include "core/plan/key.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

using toy::Builder;

TEST(PlanKey, SaysWhichValueIsHeldAndWhichIsAskedFor) {
  const PlanKey held({.program = "step", .training = "false"});
  const PlanKey asked({.program = "step", .training = "true"});
  EXPECT_EQ(held.differences(asked), (std::vector<std::string>{"training: false != true"}));
  EXPECT_FALSE(held == asked);
}

TEST(PlanKey, PrintsLongValuesWhereTheyPart) {
  const std::string same(500, 'a');
  const PlanKey held({.optimizer = same + "lr 1"}), asked({.optimizer = same + "lr 2"});
  ASSERT_EQ(held.differences(asked).size(), 1u);
  const std::string text = held.differences(asked)[0];
  EXPECT_NE(text.find("lr 1 != ..."), std::string::npos) << text;
  EXPECT_NE(text.find("lr 2"), std::string::npos) << text;
  EXPECT_LT(text.size(), 120u) << text;
}

TEST(PlanKey, SaysThatAValueIsMissing) {
  const PlanKey held({.objectives = "box"}), asked;
  EXPECT_EQ(held.differences(asked), (std::vector<std::string>{"objectives: box != (nothing)"}));
}

TEST(PlanKey, DoesNotRunPartsTogether) {
  EXPECT_FALSE(PlanKey({.program = "ab", .model = "c"}) ==
               PlanKey({.program = "a", .model = "bc"}));
}

TEST(PlanKey, ShapesAloneAreNotInTheClass) {
  const PlanKey first({.model = "m", .shapes = "x float32[2]"});
  const PlanKey second({.model = "m", .shapes = "x float32[3]"});
  const PlanKey third({.model = "n", .shapes = "x float32[2]"});
  EXPECT_EQ(first.class_digest(), second.class_digest());
  EXPECT_FALSE(first.class_digest() == third.class_digest());
}

TEST(PlanKey, NamesTheDeviceAndItsMemory) {
  toy::Backend backend({.name = "there", .memory = GR_MEMORY_HANDLE});
  EXPECT_EQ(device_text(*backend.device()), "there (toy; memory handle, alignment 64, 8 streams)");
}

TEST(GraphHash, ChangesWithTheContentsOfConstants) {
  const auto hash_with = [](double number) {
    Builder b;
    b.output("y", b.op("Add", {b.input("x", {2}), b.constant({2}, {1, number})}));
    return hash_of(b.graph);
  };
  EXPECT_EQ(hash_with(2), hash_with(2));
  EXPECT_FALSE(hash_with(2) == hash_with(3));
}

TEST(GraphHash, ChangesWithAnOperatorAndAStage) {
  const auto hash_with = [](const char* op, const char* stage) {
    Builder b;
    EXPECT_TRUE(b.graph.push_stage(stage).ok());
    b.output("y", b.op(op, {b.input("x", {2})}));
    return hash_of(b.graph);
  };
  EXPECT_EQ(hash_with("Neg", "a"), hash_with("Neg", "a"));
  EXPECT_FALSE(hash_with("Neg", "a") == hash_with("Twice", "a"));
  EXPECT_FALSE(hash_with("Neg", "a") == hash_with("Neg", "b"));
}

}  // namespace
}  // namespace gradrack
