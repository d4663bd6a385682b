// SPDX-License-Identifier: Apache-2.0
// Initial values: golden numbers (from the Python twin of Philox), distribution, independence.
#include "core/state/initial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gradrack/tensor.h"

namespace gradrack {
namespace {

std::vector<double> draw(const std::string& name, gr_init_t init, uint64_t seed, size_t count) {
  std::vector<double> out(count);
  const Status status =
      write_initial(name, GR_FLOAT64, init, seed, static_cast<int64_t>(count), out.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

constexpr gr_init_t kNormal = {GR_INIT_NORMAL, 0, 0, 1};

TEST(Initial, NormalValuesAreTheTwins) {
  const auto got = draw("blocks.0.w", kNormal, 42, 3);
  const double want[] = {-0.7473897649577208, 0.8458203291968233, 0.4663781902025986};
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(got[k], want[k], 1e-15);
}

TEST(Initial, UniformValuesAreTheTwins) {
  const auto got = draw("blocks.0.w", {GR_INIT_UNIFORM, 0, -1, 3}, 42, 4);
  const double want[] = {0.4711242463955244, 0.3651796851494463, 0.10488886879430426,
                         0.9782684739479468};
  for (size_t k = 0; k < 4; ++k) EXPECT_EQ(got[k], -1 + 4 * want[k]);
}

TEST(Initial, ConstantsAreRoundedToTheDtype) {
  float out[3];
  ASSERT_TRUE(write_initial("p", GR_FLOAT32, {GR_INIT_CONSTANT, 0, 0.1, 0}, 1, 3, out).ok());
  EXPECT_EQ(out[2], 0.1f);
}

TEST(Initial, NormalHasItsMeanAndDeviation) {
  const auto got = draw("w", {GR_INIT_NORMAL, 0, 3, 0.02}, 7, 100000);
  double sum = 0, squares = 0;
  for (const double x : got) sum += x;
  const double mean = sum / double(got.size());
  for (const double x : got) squares += (x - mean) * (x - mean);
  EXPECT_NEAR(mean, 3, 4 * 0.02 / std::sqrt(double(got.size())));
  EXPECT_NEAR(std::sqrt(squares / double(got.size())), 0.02, 2e-4);
}

TEST(Initial, AValueDependsOnSeedNameAndElementAlone) {
  const auto longer = draw("w", kNormal, 7, 5000), shorter = draw("w", kNormal, 7, 1999);
  for (size_t k = 0; k < shorter.size(); ++k) ASSERT_EQ(longer[k], shorter[k]) << k;
  EXPECT_NE(draw("w", kNormal, 8, 1)[0], longer[0]);
  EXPECT_NE(draw("v", kNormal, 7, 1)[0], longer[0]);
}

TEST(Initial, RefusesAnUnknownKindByName) {
  double out;
  const Status status = write_initial("head.w", GR_FLOAT64, {9, 0, 0, 0}, 1, 1, &out);
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("'head.w': unknown initializer 9"), std::string::npos);
}

}  // namespace
}  // namespace gradrack
