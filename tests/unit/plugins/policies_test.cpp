// SPDX-License-Identifier: Apache-2.0
// The small policy plugins: schedulers, precisions, learning-rate schedules, through the C ABI.
#include <numeric>

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
