// SPDX-License-Identifier: Apache-2.0
// The cache on one thread: hits, what a miss says, failures, the limit, strictness.
#include "core/plan/cache.hpp"

#include <gtest/gtest.h>

namespace gradrack {
namespace {

PlanCache::Answer empty_plan() { return std::shared_ptr<const Plan>(std::make_shared<Plan>()); }

PlanKeyParts some_parts() {
  return {.program = "step",
          .model = "0123",
          .training = "true",
          .shapes = "x float32[2]",
          .trainable = "all",
          .objectives = "box, point",
          .precision = "fp32",
          .optimizer = "adamw",
          .backend_chain = "cpu",
          .fallback = "warn",
          .scheduler = "sequential",
          .memory_limit = "0"};
}

/// A cache that counts builds and keeps what it says.
struct Watched {
  explicit Watched(size_t limit = 8) : cache(limit) {
    cache.listen([this](const Event& event) { events.push_back(event); });
  }
  PlanCache::Answer get(const PlanKeyParts& parts) {
    return cache.get(PlanKey(parts), [&] {
      ++built;
      return empty_plan();
    });
  }
  PlanCache cache;
  int built = 0;
  std::vector<Event> events;
};

TEST(PlanCache, FindsAPlanAgain) {
  Watched w;
  const auto first = w.get(some_parts()), again = w.get(some_parts());
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(w.built, 1);
  EXPECT_EQ(w.cache.statistics().hits, 1);
  EXPECT_EQ(w.cache.statistics().builds, 1);
}

TEST(PlanCache, EachPartOfTheKeyAloneIsAMissThatNamesIt) {
  const std::pair<std::string, std::string PlanKeyParts::*> parts[] = {
      {"program: step != other", &PlanKeyParts::program},
      {"model: 0123 != other", &PlanKeyParts::model},
      {"training: true != other", &PlanKeyParts::training},
      {"shapes: x float32[2] != other", &PlanKeyParts::shapes},
      {"trainable: all != other", &PlanKeyParts::trainable},
      {"objectives: box, point != other", &PlanKeyParts::objectives},
      {"precision: fp32 != other", &PlanKeyParts::precision},
      {"optimizer: adamw != other", &PlanKeyParts::optimizer},
      {"backend chain: cpu != other", &PlanKeyParts::backend_chain},
      {"fallback: warn != other", &PlanKeyParts::fallback},
      {"scheduler: sequential != other", &PlanKeyParts::scheduler},
      {"memory limit: 0 != other", &PlanKeyParts::memory_limit},
      {"undo: false != other", &PlanKeyParts::undo},
      {"recompute: none != other", &PlanKeyParts::recompute},
  };
  for (const auto& [text, member] : parts) {
    Watched w;
    ASSERT_TRUE(w.get(some_parts()).ok());
    PlanKeyParts changed = some_parts();
    changed.*member = "other";
    ASSERT_TRUE(w.get(changed).ok());
    EXPECT_EQ(w.built, 2) << text;
    ASSERT_EQ(w.events.size(), 2u);
    EXPECT_EQ(w.events[0].message, "no plan is held");
    EXPECT_EQ(w.events[1].kind, "plan_miss");
    EXPECT_EQ(w.events[1].message, text);
  }
}

TEST(PlanCache, APlanForEvaluationNeverServesTraining) {
  Watched w;
  PlanKeyParts forward = some_parts();
  forward.training = "false";
  const auto evaluation = w.get(forward);
  const auto training = w.get(some_parts());
  ASSERT_TRUE(evaluation.ok() && training.ok());
  EXPECT_NE(*evaluation, *training);
  EXPECT_EQ(w.events[1].message, "training: false != true");
}

TEST(PlanCache, AMissIsComparedWithTheNearestPlan) {
  Watched w;
  PlanKeyParts far = some_parts();
  far.model = far.shapes = far.trainable = "far";
  ASSERT_TRUE(w.get(some_parts()).ok());
  ASSERT_TRUE(w.get(far).ok());
  PlanKeyParts asked = some_parts();
  asked.precision = "bf16";
  asked.trainable = "some";
  ASSERT_TRUE(w.get(asked).ok());
  EXPECT_EQ(w.events[2].message, "trainable: all != some; precision: fp32 != bf16");
}

TEST(PlanCache, AFailureIsNotKept) {
  PlanCache cache;
  int built = 0;
  const auto build = [&]() -> PlanCache::Answer {
    if (++built == 1) return invalid_argument("not today");
    return empty_plan();
  };
  const Status status = cache.get(PlanKey(some_parts()), build).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "not today");
  EXPECT_TRUE(cache.held().empty());
  EXPECT_TRUE(cache.get(PlanKey(some_parts()), build).ok());
  EXPECT_EQ(cache.statistics().failures, 1);
  EXPECT_EQ(cache.statistics().builds, 1);
}

TEST(PlanCache, AReplacedPlanIsLetGoAndTheOtherFound) {
  PlanCache cache;
  const PlanKey key(some_parts());
  const auto build = []() -> PlanCache::Answer { return empty_plan(); };
  const std::weak_ptr<const Plan> first = *cache.get(key, build);
  const std::shared_ptr<const Plan> other = *empty_plan();
  cache.replace(key, other);
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(*cache.get(key, build), other);
  EXPECT_EQ(cache.statistics().builds, 1);
  PlanKeyParts unknown = some_parts();
  unknown.model = "unknown";
  cache.replace(PlanKey(unknown), other);
  EXPECT_EQ(cache.held().size(), 1u);
}

PlanKeyParts numbered(int number) {
  PlanKeyParts parts = some_parts();
  parts.shapes = "x float32[" + std::to_string(number) + "]";
  return parts;
}

TEST(PlanCache, PutsOutWhatWasUsedLongestAgo) {
  Watched w(2);
  ASSERT_TRUE(w.get(numbered(1)).ok());
  const std::weak_ptr<const Plan> second = *w.get(numbered(2));
  ASSERT_TRUE(w.get(numbered(1)).ok());  // used again: 2 is the oldest now
  ASSERT_TRUE(w.get(numbered(3)).ok());
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(w.cache.statistics().evictions, 1);
  EXPECT_EQ(w.events.back().kind, "plan_evicted");
  EXPECT_EQ(w.events.back().level, Level::kWarn);
  ASSERT_TRUE(w.get(numbered(1)).ok());
  EXPECT_EQ(w.built, 3);
  ASSERT_TRUE(w.get(numbered(2)).ok());
  EXPECT_EQ(w.built, 4);
  EXPECT_EQ(w.events[w.events.size() - 2].message,
            "it was put out, since the cache holds 2 plans at most");
}

TEST(PlanCache, WhoUsesAPlanKeepsItWhenItIsPutOut) {
  Watched w(1);
  const auto used = w.get(numbered(1));
  ASSERT_TRUE(used.ok() && w.get(numbered(2)).ok());
  EXPECT_EQ(used->use_count(), 1);
  ASSERT_EQ(w.cache.held().size(), 1u);
  EXPECT_EQ(w.cache.held()[0].first, PlanKey(numbered(2)));
}

TEST(PlanCache, StrictRefusesABuildAndSaysWhatDiffers) {
  Watched w;
  PlanKeyParts forward = some_parts();
  forward.training = "false";
  ASSERT_TRUE(w.get(forward).ok());
  w.cache.set_strict(true);
  EXPECT_TRUE(w.get(forward).ok());
  const Status status = w.get(some_parts()).status();
  EXPECT_EQ(status.code(), GR_FAILED_PRECONDITION);
  EXPECT_NE(status.message().find("training: false != true"), std::string::npos)
      << status.message();
  EXPECT_EQ(w.built, 1);
  w.cache.set_strict(false);
  EXPECT_TRUE(w.get(some_parts()).ok());
}

TEST(PlanCache, TellsItsCountsInOneLine) {
  const PlanCacheStatistics counts{.builds = 6,
                                   .rebinds = 1,
                                   .hits = 42,
                                   .waits = 18,
                                   .build_ns = 12'300'000,
                                   .rebind_ns = 500'000};
  EXPECT_EQ(counts.text(),
            "6 builds in 12.3 ms, 1 rebind in 0.5 ms, 42 hits, 18 waits, 0 evictions");
}

}  // namespace
}  // namespace gradrack
