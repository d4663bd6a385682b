// SPDX-License-Identifier: Apache-2.0
// Schedules: answers of schedulers are checked, waits are sufficient and none can be left out.
#include "core/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/schedule/happens_before.hpp"
#include "tests/support/toy_scheduler.hpp"
#include "tests/unit/schedule/tables.hpp"

namespace gradrack {
namespace {

using testing::random_table;
using testing::table_of;

const TaskTable& diamond() {
  static const TaskTable table = table_of({{}, {0}, {0}, {1, 2}});
  return table;
}

Schedule ask(toy::Scheduler& scheduler, const TaskTable& table, uint32_t max_streams = 8) {
  ScheduleRequest request;
  request.table = &table;
  request.scheduler_name = "under test";
  request.scheduler = scheduler.table();
  request.max_streams = max_streams;
  auto made = make_schedule(request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

toy::Scheduler answering(std::vector<uint32_t> order, std::vector<uint32_t> stream) {
  return toy::Scheduler(
      2, [=](const gr_schedule_request_t&, uint32_t* o, uint32_t* s, gr_error_t*) -> int32_t {
        std::copy(order.begin(), order.end(), o);
        std::copy(stream.begin(), stream.end(), s);
        return GR_OK;
      });
}

void expect_fallback(std::vector<uint32_t> order, std::vector<uint32_t> stream,
                     const std::string& reason) {
  toy::Scheduler scheduler = answering(std::move(order), std::move(stream));
  const Schedule made = ask(scheduler, diamond());
  EXPECT_EQ(made.order, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(made.lanes.size(), 1u);
  EXPECT_EQ(made.scheduler, "program order");
  EXPECT_NE(made.fallback_reason.find(reason), std::string::npos) << made.fallback_reason;
  EXPECT_NE(made.fallback_reason.find("under test"), std::string::npos);
}

TEST(Schedule, TakesALegalAnswer) {
  toy::Scheduler scheduler = answering({0, 2, 1, 3}, {0, 0, 1, 0});
  const Schedule made = ask(scheduler, diamond());
  EXPECT_EQ(made.order, (std::vector<uint32_t>{0, 2, 1, 3}));
  EXPECT_EQ(made.scheduler, "under test");
  EXPECT_EQ(made.fallback_reason, "");
  EXPECT_EQ(made.lanes.size(), 2u);
}

TEST(Schedule, FallsBackWhenATaskIsOrderedTwice) {
  expect_fallback({0, 1, 1, 3}, {0, 0, 0, 0}, "task 1 (t1) is ordered twice");
}

TEST(Schedule, FallsBackWhenATaskDoesNotExist) {
  expect_fallback({0, 1, 2, 4}, {0, 0, 0, 0}, "is task 4, there are 4");
}

TEST(Schedule, FallsBackWhenADependencyComesLater) {
  expect_fallback({0, 1, 3, 2}, {0, 0, 0, 0}, "task 3 (t3) comes before task 2 (t2)");
}

TEST(Schedule, FallsBackWhenAStreamIsOutOfRange) {
  expect_fallback({0, 1, 2, 3}, {0, 0, 2, 0}, "task 2 is on stream 2, there are 2");
}

TEST(Schedule, FallsBackWhenTheSchedulerDeclines) {
  toy::Scheduler scheduler(
      2, [](const gr_schedule_request_t&, uint32_t*, uint32_t*, gr_error_t* err) -> int32_t {
        return gr_fail(err, GR_UNSUPPORTED, "", "too many tasks for me");
      });
  EXPECT_NE(ask(scheduler, diamond()).fallback_reason.find("too many tasks for me"),
            std::string::npos);
}

TEST(Schedule, StopsOnAnyOtherError) {
  toy::Scheduler scheduler(
      2, [](const gr_schedule_request_t&, uint32_t*, uint32_t*, gr_error_t* err) -> int32_t {
        return gr_fail(err, GR_INTERNAL, "", "a bug");
      });
  ScheduleRequest request;
  request.table = &diamond();
  request.scheduler = scheduler.table();
  auto made = make_schedule(request);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), GR_INTERNAL);
}

TEST(Schedule, OffersNoMoreStreamsThanTheDevicesHave) {
  uint32_t offered = 0;
  toy::Scheduler scheduler(
      7, [&](const gr_schedule_request_t& request, uint32_t*, uint32_t*, gr_error_t*) -> int32_t {
        offered = request.streams;
        return GR_UNSUPPORTED;
      });
  ask(scheduler, diamond(), 3);
  EXPECT_EQ(offered, 3u);
}

TEST(Schedule, TellsTheBuffersAndWhatAWaitCosts) {
  TaskTable table = diamond();
  table.buffers = {{64, false, {0, 1, 2}}, {8, true, {3}}};
  table.wait_ns = 20;
  const TaskRequest request(table, 2, 0);
  const gr_schedule_request_t& told = *request.get();
  ASSERT_TRUE(GR_HAS(&told, wait_ns));
  ASSERT_EQ(told.buffer_count, 2u);
  ASSERT_EQ(told.buffer_stride, sizeof(gr_task_buffer_t));
  EXPECT_EQ(told.buffers[0].bytes, 64);
  EXPECT_EQ(std::vector<uint32_t>(told.buffers[0].users, told.buffers[0].users + 3),
            (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(told.buffers[0].user_count, 3u);
  EXPECT_EQ(told.buffers[0].flags, 0u);
  EXPECT_EQ(told.buffers[1].flags, uint32_t{GR_BUFFER_KEPT});
  EXPECT_EQ(told.wait_ns, 20);
}

TEST(Schedule, OneStreamNeedsNoWaits) { EXPECT_TRUE(program_order(diamond()).waits.empty()); }

TEST(Schedule, DiamondOnTwoStreamsNeedsTwoWaits) {
  auto made = schedule_from(diamond(), {0, 1, 2, 3}, {0, 0, 1, 0}, 2);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->waits, (std::vector<Wait>{{2, 0}, {3, 2}}));
}

TEST(Schedule, AWaitThatAnotherImpliesIsLeftOut) {
  // 2 needs 0 (stream 0) and 1 (stream 1), and 1 has waited for 0 already.
  const TaskTable table = table_of({{}, {0}, {0, 1}});
  auto made = schedule_from(table, {0, 1, 2}, {0, 1, 2}, 3);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->waits, (std::vector<Wait>{{1, 0}, {2, 1}}));
}

TEST(Schedule, DevicesHaveLanesOfTheirOwn) {
  TaskTable table = table_of({{}, {0}});
  table.tasks[1].device = 1;
  auto made = schedule_from(table, {0, 1}, {0, 0}, 1);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->lanes.size(), 2u);
  EXPECT_EQ(made->waits, (std::vector<Wait>{{1, 0}}));
}

TEST(HappensBefore, WaitsOfRandomSchedulesSufficeAndEachIsNeeded) {
  size_t mutations = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const TaskTable table = random_table(seed, 24);
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    const Schedule made = ask(scheduler, table);
    ASSERT_EQ(made.fallback_reason, "");
    const Status proof = check_happens_before(table, made, {});
    ASSERT_TRUE(proof.ok()) << proof.message();
    for (size_t k = 0; k < made.waits.size(); ++k) {
      Schedule mutant = made;
      mutant.waits.erase(mutant.waits.begin() + static_cast<std::ptrdiff_t>(k));
      EXPECT_FALSE(check_happens_before(table, mutant, {}).ok())
          << "seed " << seed << " wait " << k;
      ++mutations;
    }
  }
  EXPECT_GT(mutations, 500u);
}

TEST(HappensBefore, RefutesAnUnorderedPairOnSharedBytes) {
  const TaskTable table = table_of({{}, {}});
  auto made = schedule_from(table, {0, 1}, {0, 1}, 2);
  ASSERT_TRUE(made.ok());
  const Status apart =
      check_happens_before(table, *made, {{0, 0, 0, 64, true}, {1, 0, 64, 64, true}});
  EXPECT_TRUE(apart.ok()) << apart.message();
  const Status race =
      check_happens_before(table, *made, {{0, 0, 0, 65, true}, {1, 0, 64, 64, false}});
  ASSERT_FALSE(race.ok());
  EXPECT_NE(race.message().find("task 0 (t0) and task 1 (t1)"), std::string::npos)
      << race.message();
}

TEST(HappensBefore, RefutesAWriterBesideAnyOfTheReaders) {
  const TaskTable table = table_of({{}, {0}, {0}, {1}});  // 3 writes over what 1 and 2 read
  auto made = schedule_from(table, {0, 1, 2, 3}, {0, 0, 1, 0}, 2);
  ASSERT_TRUE(made.ok());
  std::vector<Access> accesses = {{0, 0, 0, 64, true}, {1, 0, 0, 32, false}, {2, 0, 40, 8, false}};
  accesses.push_back({3, 0, 0, 40, true});  // beside the bytes of 2
  const Status apart = check_happens_before(table, *made, accesses);
  EXPECT_TRUE(apart.ok()) << apart.message();
  accesses.back().bytes = 41;
  const Status race = check_happens_before(table, *made, accesses);
  ASSERT_FALSE(race.ok());
  EXPECT_NE(race.message().find("task 2 (t2) and task 3 (t3) are not ordered: both use bytes 40 to "
                                "41 of space 0"),
            std::string::npos)
      << race.message();
}

TEST(HappensBefore, RefutesReadersBesideALaterWriter) {
  const TaskTable table = table_of({{}, {}, {}});
  auto made = schedule_from(table, {0, 1, 2}, {0, 0, 1}, 2);
  ASSERT_TRUE(made.ok());
  const Status race = check_happens_before(
      table, *made, {{0, 0, 0, 8, true}, {1, 0, 0, 8, true}, {2, 0, 0, 8, false}});
  ASSERT_FALSE(race.ok());
  EXPECT_NE(race.message().find("task 1 (t1) and task 2 (t2)"), std::string::npos)
      << race.message();
}

/// All pairs, without the sweep's transitivity.
bool races(const HappensBefore& before, const std::vector<Access>& accesses) {
  for (const Access& a : accesses) {
    for (const Access& b : accesses) {
      const bool shared = a.space == b.space && a.offset < b.offset + b.bytes &&
                          b.offset < a.offset + a.bytes && (a.write || b.write);
      if (shared && a.task != b.task && !before(a.task, b.task) && !before(b.task, a.task)) {
        return true;
      }
    }
  }
  return false;
}

TEST(HappensBefore, FindsARaceWhereverAnyPairHasOne) {
  std::mt19937 draw(7);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(draw()) % end; };
  size_t racing = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const TaskTable table = random_table(seed, 16);
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    const Schedule made = ask(scheduler, table);
    TaskTable no_deps = table;
    for (Task& task : no_deps.tasks) task.deps.clear();
    std::vector<Access> accesses;
    for (uint32_t k = 0; k < 10; ++k) {
      Access access;
      access.task = static_cast<uint32_t>(below(16));
      access.space = static_cast<int32_t>(below(2));
      access.offset = below(40);
      access.bytes = 1 + below(12);
      access.write = below(3) == 0;
      accesses.push_back(access);
    }
    const bool expected = races(HappensBefore(made), accesses);
    EXPECT_EQ(!check_happens_before(no_deps, made, accesses).ok(), expected) << "seed " << seed;
    racing += expected ? 1 : 0;
  }
  EXPECT_GT(racing, 50u);
  EXPECT_LT(racing, 350u);
}

TEST(HappensBefore, ReadersMayRunTogether) {
  const TaskTable table = table_of({{}, {}});
  auto made = schedule_from(table, {0, 1}, {0, 1}, 2);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(check_happens_before(table, *made, {{0, 0, 0, 8, false}, {1, 0, 0, 8, false}}).ok());
}

}  // namespace
}  // namespace gradrack
