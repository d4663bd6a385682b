// SPDX-License-Identifier: Apache-2.0
// The cache under threads: one build a key from cold, failures shared by those who waited. Run
// under the thread sanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "core/plan/cache.hpp"

namespace gradrack {
namespace {

constexpr int kThreads = 8;
constexpr int kKeys = 6;
constexpr int kRounds = 100;

PlanKey numbered(int number) {
  return PlanKey({.program = "step", .shapes = std::to_string(number)});
}

template <typename Body>
void on_threads(const Body& body) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PlanCacheThreads, BuildEachKeyOnceFromCold) {
  for (int round = 0; round < kRounds; ++round) {
    PlanCache cache;
    std::atomic<int> built[kKeys] = {};
    std::atomic<int> wrong = 0;
    on_threads([&](int t) {
      for (int k = 0; k < kKeys; ++k) {
        const int number = (k + t / 2) % kKeys;  // some in step with others, some not
        const auto plan = cache.get(numbered(number), [&]() -> PlanCache::Answer {
          ++built[number];
          std::this_thread::yield();
          auto made = std::make_shared<Plan>();
          made->host_waits = static_cast<size_t>(number);
          return std::shared_ptr<const Plan>(std::move(made));
        });
        if (!plan.ok() || (*plan)->host_waits != static_cast<size_t>(number)) ++wrong;
      }
    });
    for (int k = 0; k < kKeys; ++k) EXPECT_EQ(built[k], 1) << "key " << k << ", round " << round;
    EXPECT_EQ(wrong, 0);
    const PlanCacheStatistics counts = cache.statistics();
    EXPECT_EQ(counts.builds, kKeys);
    EXPECT_EQ(counts.hits + counts.waits, kThreads * kKeys - kKeys);
  }
}

TEST(PlanCacheThreads, GiveAFailureToAllWhoWaited) {
  PlanCache cache;
  std::atomic<int> built = 0, told = 0;
  on_threads([&](int) {
    const auto answer = cache.get(numbered(0), [&]() -> PlanCache::Answer {
      ++built;
      while (cache.statistics().waits < kThreads - 1) std::this_thread::yield();
      return Status(GR_OUT_OF_MEMORY, "no room for it");
    });
    if (answer.status().code() == GR_OUT_OF_MEMORY) ++told;
  });
  EXPECT_EQ(built, 1);
  EXPECT_EQ(told, kThreads);
  EXPECT_EQ(cache.statistics().failures, 1);
  EXPECT_TRUE(cache.held().empty());
}

TEST(PlanCacheThreads, StayWithinTheLimit) {
  PlanCache cache(2);
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    for (int k = 0; k < 200; ++k) {
      const int number = (k * (t + 1)) % kKeys;
      const auto plan = cache.get(numbered(number), [&]() -> PlanCache::Answer {
        auto made = std::make_shared<Plan>();
        made->host_waits = static_cast<size_t>(number);
        return std::shared_ptr<const Plan>(std::move(made));
      });
      if (!plan.ok() || (*plan)->host_waits != static_cast<size_t>(number)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.held().size(), 2u);
  const PlanCacheStatistics counts = cache.statistics();
  EXPECT_EQ(counts.evictions, counts.builds - 2);
}

}  // namespace
}  // namespace gradrack
