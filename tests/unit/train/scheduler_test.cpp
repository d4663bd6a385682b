// SPDX-License-Identifier: Apache-2.0
// What a run says of its scheduler: whose order it takes, why not, within which memory.
#include <gtest/gtest.h>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

using Sets = std::vector<std::string>;

std::string limit_of(int64_t bytes) { return "memory.limit=\"" + std::to_string(bytes) + "\""; }

class SchedulerOfARun : public testing::TrainerFixture {
 protected:
  /// What became of a trainer of the stems with one microbatch.
  struct Made {
    Status status;
    std::vector<std::string> fallbacks;
    size_t most_lanes = 0;  // of its plans
    int64_t bytes = 0;
    std::string scheduler_key;
  };

  Made make(const std::string& scheduler, const Sets& more = {}) {
    Sets sets = more;
    sets.push_back("scheduler=" + scheduler);
    sets.push_back(testing::emulated("memory: host"));
    Made made;
    const std::unique_ptr<Session> session = stems_session(sets);
    if (session == nullptr) return made;
    session->events.add([&made](const Event& event) {
      if (event.kind == "fallback") made.fallbacks.push_back(event.message);
    });
    const auto trainer = Trainer::make(*session);
    made.status = trainer.status();
    if (!trainer.ok()) return made;
    for (const auto& each : (*trainer)->programs().plans()) {
      made.most_lanes = std::max(made.most_lanes, each.plan->schedule.lanes.size());
      made.scheduler_key = each.key->parts().scheduler;
    }
    made.bytes = (*trainer)->programs().allocated_bytes();
    EXPECT_EQ(made.bytes, (*trainer)->programs().planned_bytes());
    return made;
  }
};

TEST_F(SchedulerOfARun, IsNotTakenOnOneStreamAndTheEventNamesTheOption) {
  const Made made = make("{plugin: shuffled, streams: 1}");
  ASSERT_FALSE(made.fallbacks.empty());
  for (const std::string& text : made.fallbacks) {
    EXPECT_EQ(text,
              "program order on one stream instead: scheduler shuffled: it asks for one stream: "
              "set its option 'streams' to 2 or more");
  }
  EXPECT_EQ(made.most_lanes, 1u);
}

TEST_F(SchedulerOfARun, SequentialIsWhatWasAskedFor) {
  EXPECT_EQ(make("{plugin: sequential}").fallbacks, std::vector<std::string>());
}

TEST_F(SchedulerOfARun, IsTakenWithoutGainWhereAutoOffIsOff) {
  const Made made = make("{plugin: shuffled, streams: 3, auto_off: false}");
  EXPECT_EQ(made.fallbacks, std::vector<std::string>());
  EXPECT_EQ(made.most_lanes, 3u);
  EXPECT_NE(made.scheduler_key, make("{plugin: shuffled, streams: 3}").scheduler_key);
}

TEST_F(SchedulerOfARun, KeepsTheLimitOrIsPutAsideAndTheLeastIsNamed) {
  const std::string shuffled = "{plugin: shuffled, streams: 4, seed: 3, auto_off: false}";
  const int64_t least = make("{plugin: sequential}").bytes, free = make(shuffled).bytes;
  ASSERT_LT(least, free);
  for (const int64_t limit : {free, free - 1, (least + free) / 2, least}) {
    const Made made = make(shuffled, {limit_of(limit)});
    ASSERT_TRUE(made.status.ok()) << limit << ": " << made.status.message();
    EXPECT_LE(made.bytes, limit);
    EXPECT_EQ(made.fallbacks.empty(), limit == free) << limit;
    for (const std::string& text : made.fallbacks) {
      EXPECT_NE(text.find("over the memory limit"), std::string::npos) << text;
    }
  }
  for (const std::string& scheduler : {shuffled, std::string("{plugin: sequential}")}) {
    const Made refused = make(scheduler, {limit_of(least - 1)});
    ASSERT_FALSE(refused.status.ok());
    const std::string wanted = "(" + std::to_string(least) + " bytes), which is the least";
    EXPECT_NE(refused.status.message().find(wanted), std::string::npos) << refused.status.message();
  }
}

TEST_F(SchedulerOfARun, AnOptionCalledLrIsPartOfTheKeyUnlessItIsTheOptimizers) {
  const Made one = make("{plugin: shuffled, lr: 1}"), two = make("{plugin: shuffled, lr: 2}");
  EXPECT_NE(one.scheduler_key, two.scheduler_key);
  EXPECT_NE(two.scheduler_key.find("lr: 2"), std::string::npos) << two.scheduler_key;
}

}  // namespace
}  // namespace gradrack
