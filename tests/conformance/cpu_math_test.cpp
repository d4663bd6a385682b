// SPDX-License-Identifier: Apache-2.0
// The cpu backend's float32 functions against double, in every instruction set this machine can
// run.
//
// Errors are in units of the last place of the right float32 result; the limits are those that
// simd_math.hpp states.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/simd.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::cpu {
namespace {

std::vector<const Simd*> tables() {
  std::vector<const Simd*> all = {simd_base()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(simd_avx2());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    all.push_back(simd_avx512());
  }
#endif
  return all;
}

double ulps(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (got == nearest) return 0;
  const double unit = static_cast<double>(std::nextafter(std::fabs(nearest), INFINITY)) -
                      std::fabs(double(nearest));
  return std::fabs(static_cast<double>(got) - want) / unit;
}

/// Largest error of a function over a sweep of [low, high].
double worst(const Simd& table, Unary which, double (*truth)(double), float low, float high) {
  constexpr int kCount = 400001;
  std::vector<float> x(kCount), y(kCount);
  for (int k = 0; k < kCount; ++k) {
    x[size_t(k)] = low + (high - low) * static_cast<float>(k) / static_cast<float>(kCount - 1);
  }
  table.unary[static_cast<int>(which)](x.data(), y.data(), kCount, 1.0f);
  double most = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    most = std::max(most, ulps(y[k], truth(static_cast<double>(x[k]))));
  }
  return most;
}

double exp_of(double x) { return std::exp(x); }
double tanh_of(double x) { return std::tanh(x); }
double erf_of(double x) { return std::erf(x); }
double log_of(double x) { return std::log(x); }
double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }

TEST(CpuMath, FunctionsKeepTheirStatedError) {
  for (const Simd* table : tables()) {
    SCOPED_TRACE(table->name);
    EXPECT_LE(worst(*table, Unary::kExp, exp_of, -87.0f, 88.5f), 2.0);
    EXPECT_LE(worst(*table, Unary::kExp, exp_of, -1.0f, 1.0f), 2.0);
    EXPECT_LE(worst(*table, Unary::kTanh, tanh_of, -10.0f, 10.0f), 3.0);
    EXPECT_LE(worst(*table, Unary::kTanh, tanh_of, -0.7f, 0.7f), 3.0);
    EXPECT_LE(worst(*table, Unary::kErf, erf_of, -5.0f, 5.0f), 3.0);
    EXPECT_LE(worst(*table, Unary::kErf, erf_of, -0.95f, 0.95f), 3.0);
    EXPECT_LE(worst(*table, Unary::kLog, log_of, 1e-3f, 1e4f), 2.0);
    EXPECT_LE(worst(*table, Unary::kLog, log_of, 0.5f, 2.0f), 2.0);
    EXPECT_LE(worst(*table, Unary::kSigmoid, sigmoid_of, -80.0f, 80.0f), 4.0);
  }
}

TEST(CpuMath, LimitsAndNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {inf, -inf, std::nanf(""), 0.0f, 100.0f, -200.0f, 1e-40f};
  std::vector<float> y(x.size());
  for (const Simd* table : tables()) {
    SCOPED_TRACE(table->name);
    const auto run = [&](Unary which) {
      table->unary[static_cast<int>(which)](x.data(), y.data(), static_cast<int64_t>(x.size()),
                                            1.0f);
    };
    run(Unary::kExp);
    EXPECT_EQ(y[0], inf);
    EXPECT_EQ(y[1], 0.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0f);
    EXPECT_EQ(y[4], inf);
    EXPECT_EQ(y[5], 0.0f);
    run(Unary::kTanh);
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], -1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0.0f);
    run(Unary::kErf);
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], -1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    run(Unary::kLog);
    EXPECT_EQ(y[0], inf);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], -inf);
    EXPECT_NEAR(y[6], std::log(1e-40), 1e-4);
    run(Unary::kSigmoid);
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 0.0f);
    run(Unary::kRelu);
    EXPECT_EQ(y[1], 0.0f);
    EXPECT_TRUE(std::isnan(y[2]));
  }
}

// NUM-05, NUM-06: statistics neither overflow nor cancel.
TEST(CpuMath, StatisticsOfLargeAndOffsetRows) {
  for (const Simd* table : tables()) {
    SCOPED_TRACE(table->name);
    std::vector<float> x(100);
    for (size_t k = 0; k < x.size(); ++k) x[k] = 1e6f + static_cast<float>(k % 2);
    EXPECT_NEAR(table->statistics(x.data(), 100, {0.0, true}).inverse, 2.0, 1e-9);
    const std::vector<float> large = {3e20f, 4e20f};
    EXPECT_NEAR(std::sqrt(table->sum_squares(large.data(), 2)) / 5e20, 1.0, 1e-6);
  }
}

TEST(CpuMath, SoftmaxOfHugeScoresAndOfNothingSeen) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Simd* table : tables()) {
    SCOPED_TRACE(table->name);
    const std::vector<float> x = {1e30f, -inf, 1e30f};
    std::vector<float> y(3);
    table->softmax(x.data(), y.data(), 3);
    EXPECT_FLOAT_EQ(y[0], 0.5f);
    EXPECT_EQ(y[1], 0.0f);
    const std::vector<float> nothing = {-inf, -inf, -inf};
    table->softmax(nothing.data(), y.data(), 3);
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

TEST(CpuMath, ElementsDoNotDependOnWhereALoopIsCut) {
  std::vector<float> x(1003), whole(1003), parts(1003);
  for (size_t k = 0; k < x.size(); ++k) x[k] = std::sin(static_cast<float>(k)) * 3;
  for (const Simd* table : tables()) {
    for (int which = 0; which < static_cast<int>(Unary::kCount); ++which) {
      table->unary[which](x.data(), whole.data(), 1003, 0.7f);
      for (int64_t at = 0; at < 1003; at += 101) {
        table->unary[which](x.data() + at, parts.data() + at, std::min<int64_t>(101, 1003 - at),
                            0.7f);
      }
      for (size_t k = 0; k < x.size(); ++k) {
        ASSERT_TRUE(whole[k] == parts[k] || (whole[k] != whole[k] && parts[k] != parts[k]))
            << table->name << " function " << which << " at " << k;
      }
    }
  }
}

/// Half a million bit patterns, all exponents among them: what is not a NaN has the bits that the
/// SDK's own rounding gives, wherever a loop was cut.
TEST(CpuMath, LoopsRoundToBfloat16AsTheSdkDoes) {
  std::vector<float> x;
  for (uint64_t k = 0; k < (uint64_t{1} << 32); k += 8191) {
    const auto bits = static_cast<uint32_t>(k);
    float number;
    std::memcpy(&number, &bits, sizeof number);
    x.push_back(number);
  }
  const auto count = static_cast<int64_t>(x.size());
  for (const Simd* table : tables()) {
    std::vector<uint16_t> y(x.size());
    std::vector<float> back(x.size());
    table->to_bfloat16(x.data(), y.data(), count - 5);
    table->to_bfloat16(x.data() + count - 5, y.data() + count - 5, 5);
    table->from_bfloat16(y.data(), back.data(), count);
    for (size_t k = 0; k < x.size(); ++k) {
      if (std::isnan(x[k])) {
        ASSERT_TRUE(std::isnan(back[k])) << table->name << " at " << k;
        continue;
      }
      ASSERT_EQ(y[k], sdk::to_bfloat16(x[k])) << table->name << " at " << x[k];
      ASSERT_EQ(back[k], sdk::from_bfloat16(y[k])) << table->name << " at " << x[k];
    }
  }
}

}  // namespace
}  // namespace gradrack::cpu
