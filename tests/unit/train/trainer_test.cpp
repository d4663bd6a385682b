// SPDX-License-Identifier: Apache-2.0
// The training loop in process: nothing is allocated per step, memory is what was announced, the
// bits do not depend on how a step is cut into plans, a bad step changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <span>

#include "tests/unit/train/trainer_fixture.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRADRACK_COUNTS_ALLOCATIONS 0
#else
#define GRADRACK_COUNTS_ALLOCATIONS 1
#endif

namespace {
thread_local bool t_counting = false;    // NOLINT: read by malloc, which can reach nothing else
thread_local int64_t t_allocations = 0;  // NOLINT: as above
}  // namespace

#if GRADRACK_COUNTS_ALLOCATIONS
// Stands in front of the C library's malloc for the whole process; counts this thread's calls.
extern "C" {
void* __libc_malloc(size_t bytes);                // NOLINT: the C library's own names
void* __libc_calloc(size_t count, size_t bytes);  // NOLINT
void* __libc_realloc(void* old, size_t bytes);    // NOLINT
void* malloc(size_t bytes) {
  if (t_counting) ++t_allocations;
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  if (t_counting) ++t_allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  if (t_counting) ++t_allocations;
  return __libc_realloc(old, bytes);
}
}
#endif

namespace gradrack {
namespace {

using TrainerTest = testing::TrainerFixture;

TEST_F(TrainerTest, StepsAllocateNothingAfterTheFirst) {
  if (!GRADRACK_COUNTS_ALLOCATIONS) GTEST_SKIP() << "the sanitizer owns malloc in this build";
  const std::vector<std::vector<std::string>> runs = {
      {"run.accumulate_steps=1"},
      {"run.accumulate_steps=3"},
      {"run.accumulate_steps=2", testing::emulated("memory: device, refuse: Mul")},
      {"run.accumulate_steps=2", testing::emulated("memory: handle, refuse: gradrack.AdamW")}};
  for (size_t k = 0; k <= runs.size(); ++k) {
    // The last changes its objectives from step to step.
    const std::vector<std::string> sets =
        k < runs.size() ? runs[k] : std::vector<std::string>{"data.point_every=3"};
    const auto made = k < runs.size() ? trainer(sets) : stems_trainer(sets);
    ASSERT_NE(made, nullptr);
    steps(*made, 3);
    t_allocations = 0;
    t_counting = true;
    std::free(std::malloc(7));  // the counter counts
    const int64_t own = t_allocations;
    bool good = true;
    for (int step = 0; step < 20; ++step) good &= made->step().ok();
    t_counting = false;
    EXPECT_TRUE(good);
    EXPECT_EQ(own, 1);
    EXPECT_EQ(t_allocations - own, 0) << sets.back();
  }
}

TEST_F(TrainerTest, AnnouncedBytesAreAllocatedBytes) {
  for (const char* accumulate : {"run.accumulate_steps=1", "run.accumulate_steps=3"}) {
    const auto made = trainer({accumulate});
    ASSERT_NE(made, nullptr);
    steps(*made, 2);
    EXPECT_EQ(made->programs().planned_bytes(), made->programs().allocated_bytes()) << accumulate;
  }
}

TEST_F(TrainerTest, SameSeedSameBitsOtherSeedOtherBits) {
  const auto first = trainer({});
  const auto second = trainer({});
  const auto other = trainer({"run.seed=4"});
  for (Trainer* each : {first.get(), second.get(), other.get()}) steps(*each, 5);
  EXPECT_EQ(parameters(*first), parameters(*second));
  EXPECT_NE(parameters(*first), parameters(*other));
}

TEST_F(TrainerTest, DropoutDependsOnSeedStepAndPlaceAlone) {
  const std::vector<std::string> sets = {"model.dropout=0.5", "backend.plugin=reference"};
  const auto first = trainer(sets);
  const auto second = trainer(sets);
  steps(*first, 4);
  steps(*second, 4);
  EXPECT_EQ(parameters(*first), parameters(*second));
  const auto without = trainer({"backend.plugin=reference"});
  steps(*without, 4);
  EXPECT_NE(parameters(*first), parameters(*without));
}

TEST_F(TrainerTest, StepWithNonFiniteGradientChangesNothing) {
  const auto made = trainer({});
  ASSERT_NE(made, nullptr);
  expect_non_finite_step_changes_nothing(*made);
}

// Without clipping updates do not wait for the norm: the loss is good here, the gradient is not.
TEST_F(TrainerTest, StepIsTakenBackWhenTheNormTurnsOutNonFinite) {
  const auto made = trainer({"run.max_grad_norm=.inf", "model.tied=false"});
  ASSERT_NE(made, nullptr);
  expect_non_finite_norm_is_taken_back(*made);
}

TEST_F(TrainerTest, WithoutClippingAnUpdateNeedsNotEveryWeightGradient) {
  const auto made =
      trainer({"run.max_grad_norm=.inf", "backend={plugin: [cpu, reference], fuse: false}"});
  ASSERT_NE(made, nullptr);
  const TaskTable& table = plan_of(*made).table;
  std::vector<std::vector<bool>> behind(table.tasks.size());  // of each task: what it waits for
  bool free = false;
  for (size_t t = 0; t < table.tasks.size(); ++t) {
    behind[t].resize(table.tasks.size());
    for (const uint32_t dep : table.tasks[t].deps) {
      behind[t][dep] = true;
      for (size_t k = 0; k < dep; ++k) behind[t][k] = behind[t][k] || behind[dep][k];
    }
    if (table.tasks[t].name.find("AdamW") == std::string::npos) continue;
    for (size_t k = 0; k < t; ++k) {
      free |= table.tasks[k].kind == GR_KIND_WEIGHT_GRADIENT && !behind[t][k];
    }
  }
  EXPECT_TRUE(free);
}

}  // namespace
}  // namespace gradrack
