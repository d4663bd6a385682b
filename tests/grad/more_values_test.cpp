// SPDX-License-Identifier: Apache-2.0
// Values of operators that models made elsewhere bring: edges of numbers, ties, and indices that
// must not be taken for others.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/grad/op_run.hpp"

namespace gradrack::test {

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

HostTensor f64(std::vector<int64_t> dims, std::vector<double> numbers) {
  return HostTensor::reals(GR_FLOAT64, std::move(dims), numbers);
}
HostTensor i64(std::vector<int64_t> dims, std::vector<int64_t> numbers) {
  return HostTensor::ints(GR_INT64, std::move(dims), numbers);
}

/// `op` on `inputs`; those of `constants` are known while building.
Result<OpAnswer> run(const char* op, std::vector<HostTensor> inputs, Attrs attrs = {},
                     std::vector<size_t> constants = {}, size_t outputs = 1) {
  OpCall call;
  call.op = op;
  for (HostTensor& input : inputs) call.inputs.emplace_back(std::move(input));
  call.attrs = std::move(attrs);
  call.constants = std::move(constants);
  call.outputs = outputs;
  return run_op(reference(), call);
}

Numbers numbers(const Result<OpAnswer>& answer, size_t output = 0) {
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? answer->outputs[output].numbers() : Numbers();
}

}  // namespace

TEST(MoreValues, ATupleThatFoldingWouldHideIsRefused) {
  const HostTensor x = f64({2, 3}, {0, 1, 2, 3, 4, 5});
  // (0, 4) would be element 4 of the folded data.
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{0, 4}, {1, -4}, {-3, 2}, {2, 0}}) {
    const auto got = run("GatherND", {x, i64({1, 2}, bad)});
    ASSERT_FALSE(got.ok()) << bad[0] << ", " << bad[1];
    EXPECT_EQ(got.status().code(), GR_OUT_OF_RANGE) << got.status().message();
    EXPECT_FALSE(run("ScatterND", {x, i64({1, 2}, bad), f64({1}, {9})}).ok());
  }
  EXPECT_EQ(numbers(run("GatherND", {x, i64({2, 2}, {0, -1, -1, 0})})), (Numbers{2, 3}));
}

TEST(MoreValues, TopKBreaksTiesByPlaceAndPutsNanFirst) {
  const HostTensor x = f64({1, 5}, {2, kNan, 3, 2, 3});
  const auto top = run("TopK", {x, i64({1}, {4})}, {}, {1}, 2);
  EXPECT_EQ(numbers(top, 1), (Numbers{1, 2, 4, 0}));
  const auto low = run("TopK", {x, i64({1}, {5})}, {{"largest", int64_t{0}}}, {1}, 2);
  EXPECT_EQ(numbers(low, 1), (Numbers{0, 3, 2, 4, 1}));
}

TEST(MoreValues, ModHasTheSignThatIsAskedFor) {
  const HostTensor a = i64({4}, {7, -7, 7, -7}), b = i64({4}, {3, 3, -3, -3});
  EXPECT_EQ(numbers(run("Mod", {a, b})), (Numbers{1, 2, -2, -1}));
  EXPECT_EQ(numbers(run("Mod", {a, b}, {{"fmod", int64_t{1}}})), (Numbers{1, -1, 1, -1}));
  const auto zero = run("Mod", {a, i64({1}, {0})});
  ASSERT_FALSE(zero.ok());
  EXPECT_EQ(zero.status().code(), GR_OUT_OF_RANGE);
}

TEST(MoreValues, RoundTakesTheEvenOfTwo) {
  const HostTensor x = f64({7}, {-2.5, -1.5, 0.5, 1.5, 2.5, 0.49999999999999994, kInf});
  EXPECT_EQ(numbers(run("Round", {x})), (Numbers{-2, -2, 0, 2, 2, 0, kInf}));
}

TEST(MoreValues, InversesKeepTheDigitsOfSmallNumbers) {
  HostTensor x = HostTensor::reals(GR_FLOAT32, {2}, {1e-6, -3e-7});
  for (const char* op : {"Asinh", "Atanh", "Sinh", "Asin"}) {
    const Numbers y = numbers(run(op, {x}));
    EXPECT_NEAR(y[0], 1e-6, 1e-12) << op;
    EXPECT_NEAR(y[1], -3e-7, 4e-13) << op;
  }
}

TEST(MoreValues, LengthsDoNotOverflowWhereTheyFit) {
  HostTensor x = HostTensor::reals(GR_FLOAT32, {2}, {3e20, 4e20});
  EXPECT_NEAR(numbers(run("ReduceL2", {x}))[0], 5e20, 1e14);
  EXPECT_EQ(numbers(run("ReduceLogSumExp", {f64({2}, {1000, -kInf})})), (Numbers{1000}));
  EXPECT_EQ(numbers(run("ReduceLogSumExp", {f64({2}, {-kInf, -kInf})})), (Numbers{-kInf}));
}

TEST(MoreValues, ArgMinTakesTheFirst) {
  const HostTensor bytes = HostTensor::ints(GR_UINT8, {4}, {9, 0, 255, 0});
  EXPECT_EQ(numbers(run("ArgMin", {bytes})), (Numbers{1}));
  EXPECT_EQ(numbers(run("ReduceMin", {bytes})), (Numbers{0}));
  EXPECT_EQ(numbers(run("ReduceMin", {HostTensor::ints(GR_BOOL, {2}, {1, 0})})), (Numbers{0}));
}

TEST(MoreValues, SequencesEndWhereTheyEnd) {
  const HostTensor x = f64({2, 2, 1}, {1, 1, 1, 1});  // two steps, two sequences
  const HostTensor w = f64({1, 1, 1}, {1}), r = f64({1, 1, 1}, {1});
  OpCall call;
  call.op = "RNN";
  call.inputs = {x, w, r, std::nullopt, i64({2}, {2, 1})};
  call.attrs = {{"activations", std::string("Affine")}};
  call.outputs = 2;
  const auto answer = run_op(reference(), call);
  EXPECT_EQ(numbers(answer, 0), (Numbers{1, 1, 2, 0}));
  EXPECT_EQ(numbers(answer, 1), (Numbers{2, 1}));
}

}  // namespace gradrack::test
