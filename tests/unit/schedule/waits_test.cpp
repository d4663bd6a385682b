// SPDX-License-Identifier: Apache-2.0
// Waits are the fewest that the lanes allow.
//
// For given lanes, what must happen before what is the closure R of the dependencies and of each
// lane's order. Waits that order exactly R, so that nothing waits without need, are at least the
// edges of R's transitive reduction between two lanes, because an edge of the reduction follows
// from no others: the waits inserted are those. Where lanes are the chains of a largest matching on
// the reduction of the dependencies, that count is the bound of Nimble (NeurIPS 2020): edges -
// matching.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/schedule/happens_before.hpp"
#include "core/schedule/schedule.hpp"
#include "tests/support/toy_scheduler.hpp"
#include "tests/unit/schedule/tables.hpp"

namespace gradrack {
namespace {

using testing::random_table;
using testing::table_of;
using Edge = std::pair<uint32_t, uint32_t>;

/// The transitive reduction of an acyclic relation; by brute force.
std::vector<Edge> reduction(size_t count, const std::vector<Edge>& edges) {
  std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
  for (const auto& [a, b] : edges) reach[a][b] = true;
  for (size_t via = 0; via < count; ++via) {
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        if (reach[a][via] && reach[via][b]) reach[a][b] = true;
      }
    }
  }
  std::vector<Edge> out;
  for (uint32_t a = 0; a < count; ++a) {
    for (uint32_t b = 0; b < count; ++b) {
      bool direct = reach[a][b];
      for (size_t via = 0; via < count; ++via) direct = direct && !(reach[a][via] && reach[via][b]);
      if (direct) out.emplace_back(a, b);
    }
  }
  return out;
}

std::vector<Edge> dependencies(const TaskTable& table) {
  std::vector<Edge> edges;
  for (uint32_t t = 0; t < table.tasks.size(); ++t) {
    for (const uint32_t dep : table.tasks[t].deps) edges.emplace_back(dep, t);
  }
  return edges;
}

/// What must happen before what: dependencies and neighbours in a lane.
std::vector<Edge> required(const TaskTable& table, const Schedule& schedule) {
  std::vector<Edge> edges = dependencies(table);
  std::vector<int64_t> last(schedule.lanes.size(), -1);
  for (const uint32_t task : schedule.order) {
    int64_t& before = last[schedule.lane[task]];
    if (before >= 0) edges.emplace_back(static_cast<uint32_t>(before), task);
    before = task;
  }
  return edges;
}

TEST(Waits, AreTheReductionBetweenLanes) {
  size_t waits = 0;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    const TaskTable table = random_table(seed, 24);
    toy::Scheduler scheduler = toy::Scheduler::random(2 + seed % 7, seed);
    ScheduleRequest request;
    request.table = &table;
    request.scheduler = scheduler.table();
    request.max_streams = 8;
    const auto made = make_schedule(request);
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::vector<Edge> wanted;
    for (const auto& [a, b] : reduction(table.tasks.size(), required(table, *made))) {
      if (made->lane[a] != made->lane[b]) wanted.emplace_back(a, b);
    }
    std::vector<Edge> got;
    for (const Wait& wait : made->waits) got.emplace_back(wait.on, wait.task);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, wanted) << "seed " << seed;
    waits += got.size();
  }
  EXPECT_GT(waits, 1000u);
}

/// A largest matching between tasks and their successors, by augmenting paths.
class Matching {
 public:
  Matching(size_t count, const std::vector<Edge>& edges) : next_(count), before_(count, -1) {
    for (const auto& [a, b] : edges) next_[a].push_back(b);
    for (uint32_t a = 0; a < count; ++a) {
      std::vector<bool> seen(count, false);
      size_ += augment(a, &seen) ? 1 : 0;
    }
  }
  size_t size() const { return size_; }
  /// The task that is matched to `task` as its predecessor in a chain; -1: it begins one.
  int64_t before(uint32_t task) const { return before_[task]; }

 private:
  bool augment(uint32_t a, std::vector<bool>* seen) {
    for (const uint32_t b : next_[a]) {
      if ((*seen)[b]) continue;
      (*seen)[b] = true;
      if (before_[b] >= 0 && !augment(static_cast<uint32_t>(before_[b]), seen)) continue;
      before_[b] = a;
      return true;
    }
    return false;
  }

  std::vector<std::vector<uint32_t>> next_;
  std::vector<int64_t> before_;
  size_t size_ = 0;
};

/// Checks the bound on one table; returns it.
size_t expect_bound_of_nimble(const TaskTable& table) {
  const size_t count = table.tasks.size();
  const std::vector<Edge> edges = reduction(count, dependencies(table));
  const Matching matching(count, edges);
  std::vector<uint32_t> order(count), stream(count);
  uint32_t streams = 0;
  for (uint32_t t = 0; t < count; ++t) {
    order[t] = t;
    const int64_t before = matching.before(t);
    stream[t] = before < 0 ? streams++ : stream[static_cast<size_t>(before)];
  }
  const auto made = schedule_from(table, order, stream, streams);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->waits.size(), edges.size() - matching.size());
  return made->waits.size();
}

TEST(Waits, MeetTheBoundOfNimble) {
  EXPECT_EQ(expect_bound_of_nimble(table_of({{}, {0}, {1}, {2}})), 0u);
  EXPECT_EQ(expect_bound_of_nimble(table_of({{}, {0}, {0}, {1, 2}})), 2u);
  // Three branches of an inception block, and the shortcut that follows from the others.
  EXPECT_EQ(expect_bound_of_nimble(table_of({{}, {0}, {0}, {2}, {0}, {0, 1, 3, 4}})), 4u);
  size_t waits = 0;
  for (uint32_t seed = 0; seed < 60; ++seed)
    waits += expect_bound_of_nimble(random_table(seed, 20));
  EXPECT_GT(waits, 500u);
}

// A scheduler that makes stages wait only for producers that other stages have recorded reads a
// residual sum without order: the sum belongs to no stage, and its operands come from another
// stream.
TEST(Waits, OrderAResidualSumOfNoStage) {
  TaskTable table = table_of({{}, {0}, {1}, {0, 2}, {3}});
  table.stages = {"block0", "block1"};
  for (const size_t t : {0, 1, 2}) table.tasks[t].stage = 0;
  table.tasks[3].name = "the sum";
  table.tasks[4].stage = 1;
  const auto made = schedule_from(table, {0, 1, 2, 3, 4}, {0, 0, 0, 1, 2}, 3);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->waits, (std::vector<Wait>{{3, 2}, {4, 3}}));
  const std::vector<Access> accesses = {
      {0, 0, 0, 8, true},  {1, 0, 0, 8, false}, {2, 1, 0, 8, true}, {3, 0, 0, 8, false},
      {3, 1, 0, 8, false}, {3, 2, 0, 8, true},  {4, 2, 0, 8, false}};
  EXPECT_TRUE(check_happens_before(table, *made, accesses).ok());
  for (Task& task : table.tasks) task.deps.clear();  // the bytes alone must show it
  for (size_t k = 0; k < made->waits.size(); ++k) {
    Schedule unordered = *made;
    unordered.waits.erase(unordered.waits.begin() + static_cast<std::ptrdiff_t>(k));
    const Status race = check_happens_before(table, unordered, accesses);
    ASSERT_FALSE(race.ok()) << "wait " << k;
    EXPECT_NE(race.message().find("the sum"), std::string::npos) << race.message();
  }
}

}  // namespace
}  // namespace gradrack
