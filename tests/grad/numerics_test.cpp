// SPDX-License-Identifier: Apache-2.0
// Hard numbers in float32 on the reference backend: losses over nothing, ignored rows, large means,
// squares that overflow. Each case runs with the kernel and with the decomposition.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/grad/op_run.hpp"

namespace gradrack::test {
namespace {

HostTensor reals(std::vector<int64_t> dims, const std::vector<double>& numbers) {
  return HostTensor::reals(GR_FLOAT32, std::move(dims), numbers);
}
HostTensor labels(const std::vector<int64_t>& numbers) {
  return HostTensor::ints(GR_INT64, {static_cast<int64_t>(numbers.size())}, numbers);
}

class Numerics : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) reference().set_avoid([](const OpDef&) { return true; });
  }
  void TearDown() override { reference().set_avoid({}); }
};

OpCall cross_entropy(HostTensor scores, HostTensor targets, const char* reduction,
                     double smoothing = 0) {
  OpCall call;
  call.op = "SoftmaxCrossEntropyLoss";
  call.inputs = {std::move(scores), std::move(targets)};
  call.attrs = {{"reduction", std::string(reduction)},
                {"ignore_index", int64_t{-100}},
                {"label_smoothing", smoothing}};
  call.gy = reals({}, {1});
  call.wrt = {0};
  return call;
}

double count_targets(HostTensor targets) {
  OpCall call;
  call.domain = "gradrack";
  call.op = "CountTargets";
  call.inputs = {std::move(targets)};
  call.attrs = {{"ignore_index", int64_t{-100}}};
  auto answer = run_op(reference(), call);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? answer->outputs[0].number(0) : NAN;
}

TEST_P(Numerics, NUM02_LossOverNothingIsZeroOfZero) {
  for (const char* reduction : {"sum", "mean"}) {
    const auto answer = run_op(reference(), cross_entropy(reals({2, 4}, std::vector<double>(8, 1)),
                                                          labels({-100, -100}), reduction));
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->outputs[0].number(0), 0) << reduction;
    for (const double g : answer->grads[0].numbers()) EXPECT_EQ(g, 0) << reduction;
  }
  EXPECT_EQ(count_targets(labels({-100, -100})), 0);
}

TEST_P(Numerics, NUM02_EmptyBatchIsZeroOfZero) {
  const auto answer = run_op(reference(), cross_entropy(reals({0, 4}, {}), labels({}), "sum"));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->outputs[0].number(0), 0);
  EXPECT_EQ(count_targets(labels({})), 0);
}

TEST_P(Numerics, NUM02_IgnoredTargetDoesNotCount) {
  const auto answer = run_op(reference(), cross_entropy(reals({2, 4}, std::vector<double>(8, 0)),
                                                        labels({2, -100}), "sum"));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_NEAR(answer->outputs[0].number(0), 1.386294, 1e-6);
  EXPECT_EQ(count_targets(labels({2, -100})), 1);
}

TEST_P(Numerics, NUM02_TargetOutsideTheClassesIsAnError) {
  for (const int64_t bad : {-4, 4}) {
    const auto answer = run_op(reference(), cross_entropy(reals({2, 4}, std::vector<double>(8, 0)),
                                                          labels({1, bad}), "sum"));
    ASSERT_FALSE(answer.ok()) << bad;
    EXPECT_EQ(answer.status().code(), GR_OUT_OF_RANGE) << answer.status().message();
    if (GetParam()) continue;  // the decomposition's Gather names what it was handed
    const std::string want = "label " + std::to_string(bad) + " at position 1";
    EXPECT_NE(answer.status().message().find(want), std::string::npos) << answer.status().message();
  }
}

TEST_P(Numerics, NUM03_IgnoredRowsStayOutOfSmoothing) {
  const auto answer = run_op(reference(), cross_entropy(reals({2, 4}, {2, 0, 0, 0, 0, 0, 3, 0}),
                                                        labels({0, -100}), "sum", 0.2));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_NEAR(answer->outputs[0].number(0), 0.640753, 1e-6);
  for (int64_t k = 4; k < 8; ++k) EXPECT_EQ(answer->grads[0].number(k), 0) << k;
}

TEST_P(Numerics, NUM03_IgnoredRowOfNaNPoisonsNothing) {
  const auto answer = run_op(reference(), cross_entropy(reals({2, 2}, {2, 0, NAN, INFINITY}),
                                                        labels({0, -100}), "mean", 0.2));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_TRUE(std::isfinite(answer->outputs[0].number(0)));
  EXPECT_EQ(answer->grads[0].number(2), 0);
  EXPECT_EQ(answer->grads[0].number(3), 0);
}

OpAnswer normalize(const char* op, HostTensor x, const Attrs& attrs, int64_t size) {
  OpCall call;
  call.op = op;
  const std::vector<double> ones(static_cast<size_t>(size), 1), zeros(static_cast<size_t>(size), 0);
  call.inputs = {x, reals({size}, ones), reals({size}, zeros)};
  call.attrs = attrs;
  call.gy = HostTensor(GR_FLOAT32, x.dims);
  for (int64_t k = 0; k < x.count(); ++k) call.gy->set_number(k, k == 0 ? 1 : 0);
  call.wrt = {0};
  auto answer = run_op(reference(), call);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? *answer : OpAnswer{{x}, {x}};
}

void expect_numbers(const HostTensor& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(got.count()), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    EXPECT_NEAR(got.number(static_cast<int64_t>(k)), want[k], tolerance) << k;
  }
}

TEST_P(Numerics, NUM05_LayerNormOfALargeMean) {
  const OpAnswer a = normalize("LayerNormalization", reals({1, 4}, {40000, 40001, 40002, 40003}),
                               {{"epsilon", 1e-5}}, 4);
  expect_numbers(a.outputs[0], {-1.341635, -0.447212, 0.447212, 1.341635}, 2e-6);
}

TEST_P(Numerics, NUM05_GroupNormOfALargeMean) {
  const OpAnswer a =
      normalize("GroupNormalization", reals({1, 1, 4}, {99.99, 100.01, 99.99, 100.01}),
                {{"epsilon", 1e-5}, {"num_groups", int64_t{1}}}, 1);
  expect_numbers(a.outputs[0], {-0.9535, 0.9535, -0.9535, 0.9535}, 5e-4);
}

TEST_P(Numerics, NUM06_LayerNormOfHugeNumbers) {
  const OpAnswer a =
      normalize("LayerNormalization", reals({1, 2}, {1e30, -1e30}), {{"epsilon", 1e-5}}, 2);
  expect_numbers(a.outputs[0], {1, -1}, 1e-6);
  for (const double g : a.grads[0].numbers()) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(Numerics, NUM06_LayerNormOfEqualNumbersIsZero) {
  const OpAnswer a =
      normalize("LayerNormalization", reals({1, 4}, {5, 5, 5, 5}), {{"epsilon", 1e-5}}, 4);
  expect_numbers(a.outputs[0], {0, 0, 0, 0}, 0);
  for (const double g : a.grads[0].numbers()) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(Numerics, NUM06_NormOfLargeNumbersDoesNotOverflow) {
  OpCall call;
  call.domain = "gradrack";
  call.op = "SumSquares";
  call.inputs = {reals({2}, {3e20, 4e20})};
  const auto answer = run_op(reference(), call);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->outputs[0].dtype, GR_FLOAT64);
  EXPECT_NEAR(std::sqrt(answer->outputs[0].number(0)) / 5e20, 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Both, Numerics, testing::Values(false, true),
                         [](const auto& each) { return each.param ? "Decomposed" : "Kernel"; });

}  // namespace
}  // namespace gradrack::test
