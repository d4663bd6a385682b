// SPDX-License-Identifier: Apache-2.0
// Values that the reference backend must give: cases with known answers, what has no gradient,
// edges of dtypes, and errors of kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/autodiff/autodiff.hpp"
#include "core/graph/emitter.hpp"
#include "tests/grad/eager.hpp"

namespace gradrack::test {

namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

/// Runs one operator on host tensors; its first output, or the refusal.
class OneOp {
 public:
  explicit OneOp(std::string op) : op_(std::move(op)) {}
  OneOp& in(HostTensor tensor) {
    Value value;
    value.source = Source::kInput;
    value.name = "in" + std::to_string(inputs_.size());
    value.type = {tensor.dtype, Shape(tensor.dims.begin(), tensor.dims.end())};
    sources_[value.name] = std::move(tensor);
    inputs_.push_back(*graph_.add_source(std::move(value)));
    return *this;
  }
  OneOp& known(std::vector<int64_t> numbers) {
    inputs_.push_back(Emitter(graph_).ints(numbers));
    return *this;
  }
  OneOp& attr(std::string name, AttrValue value) {
    attrs_.set(name, std::move(value));
    return *this;
  }
  Result<HostTensor> run() {
    static const auto* const eager = new auto(Eager::open("reference"));
    if (!eager->ok()) return eager->status();
    GR_ASSIGN(const auto made, graph_.add_node("", op_, inputs_, attrs_, 1));
    GR_ASSIGN(auto values, (**eager)->run(graph_, {}, sources_, {made[0]}));
    return std::move(values[0]);
  }
  /// The numbers; a refusal fails the test and gives none.
  std::vector<double> numbers() {
    auto result = run();
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result->numbers() : std::vector<double>();
  }

 private:
  std::string op_;
  Graph graph_;
  Attrs attrs_;
  std::vector<ValueId> inputs_;
  std::map<std::string, HostTensor> sources_;
};

HostTensor f64(std::vector<int64_t> dims, std::vector<double> numbers) {
  return HostTensor::reals(GR_FLOAT64, std::move(dims), numbers);
}
HostTensor f32(std::vector<int64_t> dims, std::vector<double> numbers) {
  return HostTensor::reals(GR_FLOAT32, std::move(dims), numbers);
}
HostTensor i64(std::vector<int64_t> dims, std::vector<int64_t> numbers) {
  return HostTensor::ints(GR_INT64, std::move(dims), numbers);
}
HostTensor bools_of(std::vector<int64_t> numbers) {
  return HostTensor::ints(GR_BOOL, {static_cast<int64_t>(numbers.size())}, numbers);
}

using Numbers = std::vector<double>;

}  // namespace

TEST(Values, ONX04_GemmScalesAndTransposes) {
  const HostTensor a = f64({2, 2}, {1, 2, 3, 4}), one = f64({2, 2}, {1, 0, 0, 1});
  const Numbers with_c = OneOp("Gemm")
                             .in(a)
                             .in(one)
                             .in(f64({2}, {10, 20}))
                             .attr("transA", int64_t{1})
                             .attr("alpha", 0.5)
                             .attr("beta", 2.0)
                             .numbers();
  EXPECT_EQ(with_c, (Numbers{20.5, 41.5, 21, 42}));
  const Numbers without =
      OneOp("Gemm").in(a).in(one).attr("transA", int64_t{1}).attr("alpha", 0.5).numbers();
  EXPECT_EQ(without, (Numbers{0.5, 1.5, 1, 2}));
}

TEST(Values, ONX04_GradientOfGemmsCIsBetaTimesTheColumnSums) {
  Graph graph;
  Emitter e(graph);
  std::map<std::string, HostTensor> sources;
  const auto source = [&](const char* name, HostTensor tensor, Source kind) {
    Value value;
    value.source = kind;
    value.name = name;
    value.type = {tensor.dtype, Shape(tensor.dims.begin(), tensor.dims.end())};
    sources[name] = std::move(tensor);
    return *graph.add_source(std::move(value));
  };
  const ValueId a = source("a", f64({2, 2}, {1, 2, 3, 4}), Source::kInput);
  const ValueId b = source("b", f64({2, 2}, {1, 0, 0, 1}), Source::kInput);
  const ValueId c = source("c", f64({2}, {10, 20}), Source::kParameter);
  const ValueId y =
      e.op("Gemm", {a, b, c}, {{"transA", int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}});
  const ValueId sum = e.reduce_sum(y, {0, 1}, false);
  ASSERT_TRUE(graph.add_objective("o", sum, e.constant(GR_FLOAT64, 1)).ok());
  auto grads = differentiate(graph, {c});
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  auto eager = Eager::open("reference");
  ASSERT_TRUE(eager.ok()) << eager.status().message();
  auto values = (*eager)->run(graph, {}, sources, {grads->of[0]});
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ((*values)[0].numbers(), (Numbers{4, 4}));
}

TEST(Values, ONX06_CastRoundsTowardZeroAndSaturates) {
  const auto cast = [](Numbers from, gr_dtype_t to) {
    const auto count = static_cast<int64_t>(from.size());
    return OneOp("Cast").in(f32({count}, from)).attr("to", int64_t{to}).numbers();
  };
  EXPECT_EQ(cast({-2.7, -2.5, 2.5, 2.7}, GR_INT32), (Numbers{-2, -2, 2, 2}));
  EXPECT_EQ(cast({0, -0.0, 0.3, kNan}, GR_BOOL), (Numbers{0, 0, 1, 1}));
  EXPECT_EQ(cast({300, kNan, kInf, 50, -kInf}, GR_INT8), (Numbers{127, 0, 127, 50, -128}));
  EXPECT_EQ(cast({-1, 256, 3.9}, GR_UINT8), (Numbers{0, 255, 3}));
  EXPECT_EQ(cast({3e9, -3e9}, GR_INT32), (Numbers{2147483647.0, -2147483648.0}));
}

TEST(Values, CastToInt64SaturatesWithoutOverflow) {
  auto cast = OneOp("Cast")
                  .in(f64({3}, {1e300, -1e300, 9.007199254740993e15}))
                  .attr("to", int64_t{GR_INT64})
                  .run();
  ASSERT_TRUE(cast.ok()) << cast.status().message();
  int64_t got[3];
  std::memcpy(got, cast->bytes.data(), sizeof got);
  EXPECT_EQ(got[0], INT64_MAX);
  EXPECT_EQ(got[1], INT64_MIN);
  EXPECT_EQ(got[2], 9007199254740992);
}

TEST(Values, CastBetweenIntegersSaturates) {
  EXPECT_EQ(OneOp("Cast").in(i64({3}, {1000, -1000, 7})).attr("to", int64_t{GR_INT8}).numbers(),
            (Numbers{127, -128, 7}));
}

TEST(Values, SignFloorAndTests) {
  const HostTensor x = f64({5}, {-1.5, -0.0, 0.0, 2.5, kNan});
  const Numbers sign = OneOp("Sign").in(x).numbers();
  EXPECT_EQ(Numbers(sign.begin(), sign.end() - 1), (Numbers{-1, 0, 0, 1}));
  EXPECT_TRUE(std::isnan(sign[4]));
  EXPECT_EQ(OneOp("Floor").in(f64({3}, {-1.5, 0.5, 2})).numbers(), (Numbers{-2, 0, 2}));
  EXPECT_EQ(OneOp("IsNaN").in(x).numbers(), (Numbers{0, 0, 0, 0, 1}));
  EXPECT_EQ(OneOp("Not").in(bools_of({1, 0})).numbers(), (Numbers{0, 1}));
}

TEST(Values, IntegersOfUnaryOperators) {
  const HostTensor x = i64({3}, {-3, 0, 5});
  EXPECT_EQ(OneOp("Neg").in(x).numbers(), (Numbers{3, 0, -5}));
  EXPECT_EQ(OneOp("Abs").in(x).numbers(), (Numbers{3, 0, 5}));
  EXPECT_EQ(OneOp("Sign").in(x).numbers(), (Numbers{-1, 0, 1}));
  EXPECT_EQ(OneOp("Relu").in(x).numbers(), (Numbers{0, 0, 5}));
}

TEST(Values, ComparisonsWithNanAreFalse) {
  const auto compare = [](const char* op) {
    return OneOp(op).in(f64({4}, {1, 2, 3, kNan})).in(f64({4}, {2, 2, 2, kNan})).numbers();
  };
  EXPECT_EQ(compare("Equal"), (Numbers{0, 1, 0, 0}));
  EXPECT_EQ(compare("Less"), (Numbers{1, 0, 0, 0}));
  EXPECT_EQ(compare("LessOrEqual"), (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(compare("Greater"), (Numbers{0, 0, 1, 0}));
  EXPECT_EQ(compare("GreaterOrEqual"), (Numbers{0, 1, 1, 0}));
}

TEST(Values, LogicOverBools) {
  const auto logic = [](const char* op) {
    return OneOp(op).in(bools_of({0, 0, 1, 1})).in(bools_of({0, 1, 0, 1})).numbers();
  };
  EXPECT_EQ(logic("And"), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(logic("Or"), (Numbers{0, 1, 1, 1}));
  EXPECT_EQ(logic("Xor"), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(logic("Equal"), (Numbers{1, 0, 0, 1}));
}

TEST(Values, IntegerDivisionGoesTowardZeroAndByZeroIsAnError) {
  EXPECT_EQ(OneOp("Div").in(i64({4}, {7, -7, 7, -7})).in(i64({4}, {2, 2, -2, -2})).numbers(),
            (Numbers{3, -3, -3, 3}));
  auto bad = OneOp("Div").in(i64({3}, {1, 2, 3})).in(i64({3}, {1, 0, 1})).run();
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("at position 1"), std::string::npos)
      << bad.status().message();
}

TEST(Values, MaxAndMinKeepNan) {
  const HostTensor a = f64({3}, {1, kNan, 3}), b = f64({3}, {2, 0, kNan});
  for (const char* op : {"Max", "Min"}) {
    const Numbers y = OneOp(op).in(a).in(b).numbers();
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2])) << op;
    EXPECT_EQ(y[0], std::string(op) == "Max" ? 2 : 1);
  }
}

TEST(Values, ReductionsOverNothing) {
  const HostTensor none = f64({2, 0}, {});
  EXPECT_EQ(OneOp("ReduceSum").in(none).known({1}).numbers(), (Numbers{0, 0}));
  EXPECT_EQ(OneOp("ReduceMax").in(none).known({1}).numbers(), (Numbers{-kInf, -kInf}));
  EXPECT_EQ(OneOp("ReduceMin").in(none).known({1}).numbers(), (Numbers{kInf, kInf}));
  EXPECT_TRUE(std::isnan(OneOp("ReduceMean").in(none).known({1}).numbers()[0]));
}

TEST(Values, NUM05_LongFloat32SumsDoNotStall) {
  const int64_t count = (int64_t{1} << 24) + 3;
  HostTensor ones(GR_FLOAT32, {count});
  const float one = 1.0f;
  for (int64_t k = 0; k < count; ++k) std::memcpy(ones.bytes.data() + k * 4, &one, 4);
  EXPECT_EQ(OneOp("ReduceMean").in(ones).numbers(), (Numbers{1.0}));
}

TEST(Values, ArgMaxPicksTheFirstOrTheLast) {
  const HostTensor x = f64({2, 3}, {1, 5, 5, kNan, 2, 3});
  const auto arg = [&](int64_t last) {
    return OneOp("ArgMax").in(x).attr("axis", int64_t{1}).attr("select_last_index", last).numbers();
  };
  EXPECT_EQ(arg(0), (Numbers{1, 0}));
  EXPECT_EQ(arg(1), (Numbers{2, 0}));
}

TEST(Values, IndexOutOfRangeNamesPositionAndValue) {
  const HostTensor x = f64({5, 2}, std::vector<double>(10, 1.0));
  auto gather = OneOp("Gather").in(x).in(i64({3}, {0, 7, -9})).run();
  ASSERT_FALSE(gather.ok());
  EXPECT_EQ(gather.status().code(), GR_OUT_OF_RANGE);
  EXPECT_NE(gather.status().message().find("index 7 at position 1"), std::string::npos)
      << gather.status().message();
  auto elements = OneOp("GatherElements").in(x).in(i64({1, 2}, {0, -6})).run();
  ASSERT_FALSE(elements.ok());
  EXPECT_NE(elements.status().message().find("index -6 at position 1"), std::string::npos);
  EXPECT_FALSE(
      OneOp("ScatterElements").in(x).in(i64({1, 2}, {0, 5})).in(f64({1, 2}, {1, 1})).run().ok());
}

TEST(Values, PowOfIntegersKeepsTheBasesDtype) {
  auto y = OneOp("Pow").in(i64({3}, {2, -3, 0})).in(f64({}, {3})).run();
  ASSERT_TRUE(y.ok()) << y.status().message();
  EXPECT_EQ(y->dtype, GR_INT64);
  EXPECT_EQ(y->numbers(), (Numbers{8, -27, 0}));
}

TEST(Values, SoftplusAndSigmoidStayFinite) {
  const HostTensor x = f32({2}, {-1000, 1000});
  EXPECT_EQ(OneOp("Softplus").in(x).numbers(), (Numbers{0, 1000}));
  EXPECT_EQ(OneOp("Sigmoid").in(x).numbers(), (Numbers{0, 1}));
}

TEST(Values, SymbolicSliceThatLeavesItsAxisIsRefused) {
  Graph graph;
  Emitter e(graph);
  Value tokens;
  tokens.source = Source::kInput;
  tokens.name = "tokens";
  tokens.type = {GR_FLOAT64, {Dim::symbol("time")}};
  const ValueId x = *graph.add_source(std::move(tokens));
  Value table;
  table.source = Source::kParameter;
  table.name = "table";
  table.type = {GR_FLOAT64, {Dim(4), Dim(2)}};
  const ValueId w = *graph.add_source(std::move(table));
  const ValueId rows = e.op("Slice", {w, e.ints({0}), e.shape_of(x), e.ints({0})});
  ASSERT_TRUE(e.status().ok()) << e.status().message();
  auto eager = Eager::open("reference");
  ASSERT_TRUE(eager.ok()) << eager.status().message();
  const HostTensor content = f64({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  auto fits = (*eager)->run(graph, {{"time", 2}}, {{"table", content}}, {rows});
  ASSERT_TRUE(fits.ok()) << fits.status().message();
  EXPECT_EQ((*fits)[0].numbers(), (Numbers{1, 2, 3, 4}));
  EXPECT_FALSE((*eager)->run(graph, {{"time", 5}}, {{"table", content}}, {rows}).ok());
}

}  // namespace gradrack::test
