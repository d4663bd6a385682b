// SPDX-License-Identifier: Apache-2.0
// Dropout: what the ONNX operator becomes in training and evaluation, and the mask's numbers.
#include <gtest/gtest.h>

#include "core/graph/emitter.hpp"
#include "core/graph/replay.hpp"
#include "gradrack/philox.h"
#include "tests/grad/op_run.hpp"

namespace gradrack::test {
namespace {

/// Operators of the graph of one Dropout with training_mode and ratio, decomposed.
std::vector<std::string> decomposed(double ratio, bool training) {
  Graph graph;
  Value value;
  value.source = Source::kInput;
  value.name = "x";
  value.type = {GR_FLOAT32, {Dim(4)}};
  const ValueId x = *graph.add_source(std::move(value));
  Emitter e(graph);
  e.op("Dropout", {x, e.constant(GR_FLOAT32, ratio), e.constant(GR_BOOL, training ? 1 : 0)});
  EXPECT_TRUE(e.status().ok()) << e.status().message();
  const auto out =
      decompose_where(graph, [](const Node& node) { return bool(node.op->decompose); });
  EXPECT_TRUE(out.ok()) << out.status().message();
  std::vector<std::string> names;
  for (const Node& node : out->nodes()) names.push_back(node.op->full_name());
  return names;
}

TEST(Dropout, BecomesThePrimitiveInTraining) {
  EXPECT_EQ(decomposed(0.1, true), std::vector<std::string>{"gradrack.Dropout"});
}

TEST(Dropout, IsTheIdentityInEvaluationAndForRatioZero) {
  EXPECT_EQ(decomposed(0.1, false), std::vector<std::string>{"Identity"});
  EXPECT_EQ(decomposed(0.0, true), std::vector<std::string>{"Identity"});
}

OpCall dropout(int64_t count, std::vector<int64_t> rng, int64_t stream) {
  OpCall call;
  call.domain = "gradrack";
  call.op = "Dropout";
  const std::vector<double> ones(static_cast<size_t>(count), 1);
  call.inputs = {HostTensor::reals(GR_FLOAT64, {count}, ones),
                 HostTensor::ints(GR_INT64, {3}, rng)};
  call.attrs = {{"ratio", 0.25}, {"stream", stream}};
  call.outputs = 2;
  return call;
}

TEST(Dropout, MaskIsPhiloxOfSeedStepMicrobatchStreamAndElement) {
  const auto answer = run_op(reference(), dropout(11, {42, 7, 3}, 99));
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  for (uint32_t i = 0; i < 11; ++i) {
    const uint32_t counter[4] = {i / 4, 99, 7, 3};
    uint32_t numbers[4];
    gr_philox4x32(counter, 42, numbers);
    const bool keep = gr_uniform24(numbers[i % 4]) >= 0.25;
    EXPECT_EQ(answer->outputs[1].number(i), keep ? 1 : 0) << i;
    EXPECT_DOUBLE_EQ(answer->outputs[0].number(i), keep ? 1 / 0.75 : 0) << i;
  }
}

TEST(Dropout, KeepsItsShareAndDiffersByStepAndStream) {
  const auto base = run_op(reference(), dropout(20000, {1, 1, 0}, 5));
  const auto step = run_op(reference(), dropout(20000, {1, 2, 0}, 5));
  const auto stream = run_op(reference(), dropout(20000, {1, 1, 0}, 6));
  ASSERT_TRUE(base.ok() && step.ok() && stream.ok());
  double kept = 0;
  for (const double each : base->outputs[1].numbers()) kept += each;
  EXPECT_NEAR(kept / 20000, 0.75, 0.015);
  EXPECT_NE(base->outputs[1].bytes, step->outputs[1].bytes);
  EXPECT_NE(base->outputs[1].bytes, stream->outputs[1].bytes);
}

}  // namespace
}  // namespace gradrack::test
