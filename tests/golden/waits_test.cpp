// SPDX-License-Identifier: Apache-2.0
// Plans of real models have no wait that could be left out, and losing any is caught.
//
// Random legal orders on 2 to 8 streams. A plan without one of its waits is refuted by its
// dependencies, and, with those put aside, by the bytes that its tasks share.
#include <gtest/gtest.h>

#include "core/schedule/happens_before.hpp"
#include "tests/golden/model_cases.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

constexpr size_t kLeast = 200;  // removals for a model
constexpr size_t kMostOfAPlan = 60;
constexpr uint32_t kMostPlans = 100;

struct Tally {
  size_t removed = 0;
  size_t caught = 0;  // by dependencies and by bytes alone
};

void remove_waits(const Plan& plan, Tally* tally) {
  TaskTable no_deps = plan.table;
  for (Task& task : no_deps.tasks) task.deps.clear();
  const std::vector<Wait>& waits = plan.schedule.waits;
  const size_t stride = std::max<size_t>(1, waits.size() / kMostOfAPlan);
  for (size_t k = 0; k < waits.size(); k += stride) {
    Schedule mutant = plan.schedule;
    mutant.waits.erase(mutant.waits.begin() + static_cast<std::ptrdiff_t>(k));
    const bool missed = check_happens_before(plan.table, mutant, plan.accesses).ok() ||
                        check_happens_before(no_deps, mutant, plan.accesses).ok();
    EXPECT_FALSE(missed) << "wait of " << plan.table.tasks[waits[k].task].name << " for "
                         << plan.table.tasks[waits[k].on].name;
    ++tally->removed;
    tally->caught += missed ? 0 : 1;
  }
}

Tally removals(testing::ModelCase c, const SafetensorsFile& golden) {
  Tally tally;
  for (uint32_t seed = 0; seed < kMostPlans && (seed < 7 || tally.removed < kLeast); ++seed) {
    const uint32_t streams = 2 + seed % 7;
    toy::Scheduler scheduler = toy::Scheduler::random(streams, seed);
    c.scheduler = scheduler.table();
    testing::plan_model(c, golden, [&](const Plan& plan) {
      EXPECT_EQ(plan.schedule.lanes.size(), streams);
      remove_waits(plan, &tally);
    });
  }
  std::printf("%s: %zu of %zu removals of a wait caught\n", c.model.c_str(), tally.caught,
              tally.removed);
  EXPECT_GE(tally.removed, kLeast);
  return tally;
}

TEST(ModelWaits, LosingAnyIsCaughtInAPlanOfGpt) {
  const SafetensorsFile golden = testing::open_golden("gpt_rms_rope_swiglu_gqa_tied");
  removals(testing::gpt_case(golden, "reference"), golden);
}

TEST(ModelWaits, LosingAnyIsCaughtInAPlanOfCnn) {
  removals(testing::cnn_case("reference"), testing::open_golden("cnn"));
}

TEST(ModelWaits, LosingAnyIsCaughtInAPlanOfPose) {
  const SafetensorsFile golden = testing::open_golden("pose");
  testing::ModelCase c = testing::pose_case(golden, "reference");
  c.objective = "box";
  removals(c, golden);
}

}  // namespace
}  // namespace gradrack
