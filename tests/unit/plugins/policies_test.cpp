// SPDX-License-Identifier: Apache-2.0
// The small policy plugins: schedulers, precisions, learning-rate schedules, through the C ABI.
#include <numeric>

#include "gradrack/precision_inputs.h"
#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

using testing::Instance;
using testing::load_factory;
using testing::OptionTexts;

double rate(const char* name, const OptionTexts& texts, int64_t update, int64_t max_updates,
            double base) {
  const Instance<gr_lr_schedule_t> plugin(
      load_factory(std::string("gradrack_lr_schedule_") + name, "lr_schedule", name), texts);
  const gr_lr_request_t request = {sizeof request, 0, update, max_updates, base};
  double lr = -1;
  gr_error_t err = {};
  EXPECT_EQ(plugin->value(plugin.self(), &request, &lr, &err), GR_OK) << err.message;
  return lr;
}

TEST(ConstantSchedule, GivesTheBaseRate) {
  EXPECT_EQ(rate("constant", {}, 0, 10, 0.25), 0.25);
  EXPECT_EQ(rate("constant", {}, 99, 10, 0.25), 0.25);
}

TEST(WarmupCosine, MatchesGoldenValues) {
  const std::pair<int64_t, double> golden[] = {{0, .1},   {5, .6},   {9, 1},   {10, 1},
                                               {60, .55}, {110, .1}, {500, .1}};
  for (const auto& [update, want] : golden) {
    const double got =
        rate("warmup_cosine", {{"warmup_steps", "10"}, {"min_ratio", "0.1"}}, update, 110, 2.0);
    EXPECT_NEAR(got, 2 * want, 1e-12) << "update " << update;
  }
}

TEST(WarmupCosine, SCH03_DependsOnTheUpdateAlone) {
  const double lr =
      rate("warmup_cosine", {{"warmup_steps", "0"}, {"min_ratio", "0"}}, 45, 100, 1e-3);
  EXPECT_NEAR(lr, 5.78217e-4, 1e-9);
}

TEST(WarmupCosine, StaysFiniteWhenTheHorizonIsWithinTheWarmup) {
  const OptionTexts texts = {{"warmup_steps", "10"}, {"min_ratio", "0.1"}};
  EXPECT_DOUBLE_EQ(rate("warmup_cosine", texts, 4, 5, 1.0), 0.5);
  EXPECT_DOUBLE_EQ(rate("warmup_cosine", texts, 10, 10, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(rate("warmup_cosine", texts, 11, 10, 1.0), 0.1);
}

TEST(LinearSchedule, RisesAndFalls) {
  const OptionTexts texts = {{"warmup_steps", "10"}, {"min_ratio", "0.1"}};
  const std::pair<int64_t, double> golden[] = {{0, .1},   {9, 1},    {10, 1},
                                               {60, .55}, {110, .1}, {500, .1}};
  for (const auto& [update, want] : golden) {
    EXPECT_NEAR(rate("linear", texts, update, 110, 2.0), 2 * want, 1e-12) << "update " << update;
  }
  EXPECT_DOUBLE_EQ(rate("linear", texts, 12, 5, 1.0), 0.1);  // a horizon within the warm-up
}

TEST(WsdSchedule, IsStableUntilTheDecay) {
  const OptionTexts texts = {{"warmup_steps", "10"}, {"decay_share", "0.2"}};
  const std::pair<int64_t, double> golden[] = {{4, .5},  {10, 1},  {79, 1}, {80, 1},
                                               {90, .5}, {100, 0}, {200, 0}};
  for (const auto& [update, want] : golden) {
    EXPECT_NEAR(rate("wsd", texts, update, 100, 2.0), 2 * want, 1e-12) << "update " << update;
  }
  EXPECT_NEAR(
      rate("wsd", {{"decay_steps", "16"}, {"shape", "sqrt"}, {"min_ratio", "0.2"}}, 88, 100, 1.0),
      1 - .8 * .5, 1e-12);
  // A longer run is the same until the shorter one's decay.
  for (int64_t update = 0; update < 80; ++update) {
    EXPECT_EQ(rate("wsd", texts, update, 100, 1.0), rate("wsd", texts, update, 1000, 1.0));
  }
  EXPECT_EQ(rate("wsd", {{"decay_share", "0"}}, 99, 100, 1.0), 1.0);
  EXPECT_EQ(rate("wsd", {{"warmup_steps", "10"}, {"decay_steps", "50"}}, 10, 10, 1.0), 1.0);
}

TEST(StepSchedule, FallsByGamma) {
  const OptionTexts texts = {{"step_size", "10"}, {"gamma", "0.5"}, {"warmup_steps", "4"}};
  const std::pair<int64_t, double> golden[] = {{1, .5}, {4, 1}, {13, 1}, {14, .5}, {33, .25}};
  for (const auto& [update, want] : golden) {
    EXPECT_NEAR(rate("step", texts, update, 100, 2.0), 2 * want, 1e-12) << "update " << update;
  }
}

// Numbers of torch.optim.lr_scheduler.OneCycleLR(max_lr=2, total_steps=100), two phases.
TEST(OneCycleSchedule, MatchesPyTorch) {
  const std::pair<int64_t, double> golden[] = {
      {0, 0.08},  {10, 0.5903278969282015}, {29, 2.0},  {30, 1.9989930705690486},
      {99, 8e-6}, {60, 1.1785601805710575}, {500, 8e-6}};
  for (const auto& [update, want] : golden) {
    EXPECT_NEAR(rate("one_cycle", {}, update, 100, 2.0), want, 1e-12) << "update " << update;
  }
}

TEST(SequentialScheduler, KeepsProgramOrderOnOneStream) {
  const Instance<gr_scheduler_t> plugin(
      load_factory("gradrack_scheduler_sequential", "scheduler", "sequential"), {});
  gr_error_t err = {};
  uint32_t streams = 0;
  ASSERT_EQ(plugin->streams(plugin.self(), &streams, &err), GR_OK);
  EXPECT_EQ(streams, 1u);

  const std::vector<gr_task_t> tasks(5, gr_task_t{});
  gr_schedule_request_t request = {};
  request.struct_size = sizeof request;
  request.task_stride = sizeof(gr_task_t);
  request.tasks = tasks.data();
  request.task_count = 5;
  request.streams = 3;
  std::vector<uint32_t> order(5, 9), stream(5, 9), identity(5);
  std::iota(identity.begin(), identity.end(), 0u);
  ASSERT_EQ(plugin->schedule(plugin.self(), &request, order.data(), stream.data(), &err), GR_OK);
  EXPECT_EQ(order, identity);
  EXPECT_EQ(stream, std::vector<uint32_t>(5, 0));
}

/// What the bf16 policy says of a node into which `inputs` come.
gr_dtype_t bf16_answer(const char* domain, const char* op, std::vector<gr_dtype_t> inputs,
                       int32_t kind = GR_KIND_FORWARD) {
  const Instance<gr_precision_t> plugin(
      load_factory("gradrack_precision_mixed", "precision", "bf16"), {});
  const auto* by_inputs = static_cast<const gr_precision_inputs_t*>(
      plugin->get_extension(plugin.self(), GR_EXT_PRECISION_INPUTS));
  if (by_inputs == nullptr) return 0;
  const gr_precision_node_t node = {sizeof node, kind, domain, op, "stage"};
  gr_dtype_t dtype = 0;
  gr_error_t err = {};
  EXPECT_EQ(by_inputs->node_dtype(by_inputs->self, &node, inputs.data(),
                                  static_cast<uint32_t>(inputs.size()), &dtype, &err),
            GR_OK)
      << err.message;
  return dtype;
}

TEST(MixedPrecision, NarrowsProductsAlone) {
  constexpr gr_dtype_t kNarrow = GR_BFLOAT16, kWide = GR_FLOAT32;
  for (const int32_t kind : {GR_KIND_FORWARD, GR_KIND_INPUT_GRADIENT, GR_KIND_WEIGHT_GRADIENT}) {
    EXPECT_EQ(bf16_answer("", "MatMul", {kWide, 0}, kind), kNarrow);
    EXPECT_EQ(bf16_answer("gradrack", "FusedMatMul", {kWide, kWide}, kind), kNarrow);
    EXPECT_EQ(bf16_answer("gradrack", "ConvWeightGrad", {kNarrow, kNarrow}, kind), kNarrow);
  }
  for (const char* op : {"ReduceSum", "Softmax", "LayerNormalization", "BatchNormalization", "Exp",
                         "SoftmaxCrossEntropyLoss", "Div", "OperatorOfALaterMinor"}) {
    EXPECT_EQ(bf16_answer("", op, {kNarrow, kNarrow}), kWide) << op;
  }
  for (const char* op : {"CountTargets", "SumSquares", "IsFinite", "GatherGrad", "CausalMask"}) {
    EXPECT_EQ(bf16_answer("gradrack", op, {kNarrow}), kWide) << op;
  }
  EXPECT_EQ(bf16_answer("com.acme", "MatMul", {kNarrow, kNarrow}), kWide) << "not ONNX's";
}

TEST(MixedPrecision, FollowsWhatComesIn) {
  constexpr gr_dtype_t kNarrow = GR_BFLOAT16, kWide = GR_FLOAT32;
  EXPECT_EQ(bf16_answer("", "Add", {kNarrow, kNarrow}), kNarrow);
  EXPECT_EQ(bf16_answer("", "Add", {kNarrow, 0}), kNarrow) << "a bias is cast to the product";
  EXPECT_EQ(bf16_answer("", "Add", {kWide, kNarrow}), kWide) << "a residual stream stays wide";
  EXPECT_EQ(bf16_answer("", "Mul", {0, 0}), kWide) << "parameters alone";
  EXPECT_EQ(bf16_answer("", "Transpose", {kNarrow}), kNarrow);
  EXPECT_EQ(bf16_answer("", "Gather", {0, 0}), kWide) << "an embedding table is not narrowed";
  EXPECT_EQ(bf16_answer("gradrack", "SwishGrad", {kNarrow, kNarrow}), kNarrow);
}

TEST(MixedPrecision, KeepsParametersWideAndAnswersWithoutTheExtension) {
  const Instance<gr_precision_t> plugin(
      load_factory("gradrack_precision_mixed", "precision", "bf16"), {});
  gr_error_t err = {};
  gr_dtype_t dtype = 0;
  ASSERT_EQ(plugin->storage_dtype(plugin.self(), &dtype, &err), GR_OK);
  EXPECT_EQ(dtype, GR_FLOAT32);
  for (const auto& [op, want] : {std::pair{"MatMul", GR_BFLOAT16}, std::pair{"Add", GR_FLOAT32}}) {
    const gr_precision_node_t node = {sizeof node, GR_KIND_FORWARD, "", op, ""};
    ASSERT_EQ(plugin->node_dtype(plugin.self(), &node, &dtype, &err), GR_OK);
    EXPECT_EQ(dtype, want) << op;
  }
}

TEST(FullPrecision, AnswersOneDtypeForEverything) {
  for (const auto& [name, want] : {std::pair{"fp32", GR_FLOAT32}, std::pair{"fp64", GR_FLOAT64}}) {
    const Instance<gr_precision_t> plugin(
        load_factory("gradrack_precision_full", "precision", name), {});
    gr_error_t err = {};
    gr_dtype_t storage = 0, node = 0;
    const gr_precision_node_t question = {sizeof question, GR_KIND_FORWARD, "", "MatMul", "head"};
    ASSERT_EQ(plugin->storage_dtype(plugin.self(), &storage, &err), GR_OK);
    ASSERT_EQ(plugin->node_dtype(plugin.self(), &question, &node, &err), GR_OK);
    EXPECT_EQ(storage, want);
    EXPECT_EQ(node, want);
  }
}

}  // namespace
}  // namespace gradrack
