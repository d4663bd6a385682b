// SPDX-License-Identifier: Apache-2.0
// Arena: bytes are shared only by what is never alive together, by brute force over random
// schedules.
#include "core/plan/arena.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gradrack {
namespace {

/// Tasks in a row on one stream.
Schedule row(uint32_t count) {
  TaskTable table;
  table.tasks.resize(count);
  return program_order(table);
}

TEST(Arena, ReusesBlockAfterLastReader) {
  const HappensBefore before(row(4));
  std::vector<ArenaItem> items = {{100, 0, {0, 1}, 0}, {100, 2, {2, 3}, 0}};
  EXPECT_EQ(place_arena(&items, before, 64), 128);
  EXPECT_EQ(items[0].offset, items[1].offset);
}

TEST(Arena, KeepsInputAndOutputOfATaskApart) {
  const HappensBefore before(row(3));
  std::vector<ArenaItem> items = {{64, 0, {0, 1}, 0}, {64, 1, {1, 2}, 0}};
  EXPECT_EQ(place_arena(&items, before, 64), 128);
}

TEST(Arena, FillsTheSmallestGapThatFits) {
  // Two gaps beside items that stay: the last item takes the smaller one.
  const HappensBefore before(row(6));
  std::vector<ArenaItem> items = {{512, 0, {0, 1}, 0},
                                  {256, 0, {0, 5}, 0},
                                  {208, 0, {0, 1}, 0},
                                  {208, 0, {0, 5}, 0},
                                  {192, 3, {3, 4}, 0}};
  const int64_t total = place_arena(&items, before, 64);
  EXPECT_EQ(total, 512 + 256 + 256 + 256);
  EXPECT_EQ(items[4].offset, items[2].offset);
}

TEST(Arena, GivesNothingToEmptyItems) {
  const HappensBefore before(row(1));
  std::vector<ArenaItem> items = {{0, 0, {0}, 7}};
  EXPECT_EQ(place_arena(&items, before, 64), 0);
}

struct Case {
  TaskTable table;
  Schedule schedule;
  std::vector<ArenaItem> items;
};

/// A random DAG on 1 to 4 streams, whose tasks each make a tensor that later ones read.
Case random_case(uint32_t seed) {
  std::mt19937 draw(seed);
  const uint32_t count = 30;
  Case c;
  c.table.tasks.resize(count);
  c.items.resize(count);
  for (uint32_t t = 0; t < count; ++t) {
    c.items[t] = {static_cast<int64_t>(draw() % 1000), t, {t}, 0};
    for (uint32_t dep = t > 8 ? t - 8 : 0; dep < t; ++dep) {
      if (draw() % 4 != 0) continue;
      c.table.tasks[t].deps.push_back(dep);
      c.items[dep].uses.push_back(t);
    }
  }
  const uint32_t streams = 1 + seed % 4;
  std::vector<uint32_t> order(count), stream(count);
  for (uint32_t t = 0; t < count; ++t) {
    order[t] = t;
    stream[t] = draw() % streams;
  }
  auto made = schedule_from(c.table, order, stream, streams);
  EXPECT_TRUE(made.ok());
  c.schedule = *made;
  return c;
}

bool all_before(const HappensBefore& before, const ArenaItem& a, const ArenaItem& b) {
  for (const uint32_t use : a.uses) {
    for (const uint32_t other : b.uses) {
      if (!before(use, other)) return false;
    }
  }
  return true;
}

TEST(Arena, NeverOverlapsWhatIsAliveTogether) {
  size_t shared = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Case c = random_case(seed);
    const HappensBefore before(c.schedule);
    const int64_t total = place_arena(&c.items, before, 64);
    for (size_t i = 0; i < c.items.size(); ++i) {
      const ArenaItem& a = c.items[i];
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, total);
      for (size_t j = i + 1; j < c.items.size(); ++j) {
        const ArenaItem& b = c.items[j];
        if (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) continue;
        if (a.bytes == 0 || b.bytes == 0) continue;
        ++shared;
        EXPECT_TRUE(all_before(before, a, b) || all_before(before, b, a))
            << "seed " << seed << " items " << i << " and " << j;
      }
    }
  }
  EXPECT_GT(shared, 1000u);
}

}  // namespace
}  // namespace gradrack
