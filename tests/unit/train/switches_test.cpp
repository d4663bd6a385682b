// SPDX-License-Identifier: Apache-2.0
// Accumulation, clipping, objectives, streams and recordings in all 32 combinations: the last two
// change no bit, and each of the others does.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

constexpr int kSteps = 3;

struct Switch {
  const char* name;
  std::vector<std::string> off, on;
};

/// Those that change what a step computes.
const Switch kMeaning[] = {
    {"accumulation", {"run.accumulate_steps=1"}, {"run.accumulate_steps=3"}},
    {"clipping", {"run.max_grad_norm=.inf"}, {"run.max_grad_norm=0.05"}},
    {"objectives", {"data.point_every=1"}, {"data.point_every=2"}},
};

/// Those that must not.
const Switch kManner[] = {
    {"streams",
     {"scheduler={plugin: sequential}"},
     {"scheduler={plugin: shuffled, seed: 5, streams: 4, auto_off: false, profile: false}"}},
    {"replay", {"backend.record=false"}, {"backend.record=true"}},
};

class Switches : public testing::TrainerFixture {
 protected:
  using Bytes = std::vector<std::byte>;

  Bytes train(const std::vector<std::string>& sets) {
    const std::unique_ptr<Trainer> made = stems_trainer(sets);
    if (made == nullptr) return {};
    steps(*made, kSteps);
    for (const Programs::NamedPlan& each : made->programs().plans()) {
      most_lanes_ = std::max(most_lanes_, each.plan->schedule.lanes.size());
    }
    return parameters(*made);
  }

  template <size_t kCount>
  static std::string add(const Switch (&switches)[kCount], size_t bits,
                         std::vector<std::string>* sets) {
    std::string text;
    for (size_t k = 0; k < kCount; ++k) {
      const bool on = (bits >> k & 1) != 0;
      const std::vector<std::string>& more = on ? switches[k].on : switches[k].off;
      sets->insert(sets->end(), more.begin(), more.end());
      text += std::string(on ? " +" : " -") + switches[k].name;
    }
    return text;
  }

  size_t most_lanes_ = 0;
};

TEST_F(Switches, StreamsAndReplayKeepTheBitsOfEveryCombination) {
  std::map<Bytes, std::string> seen;
  for (size_t meaning = 0; meaning < 8; ++meaning) {
    Bytes first;
    std::string text;
    for (size_t manner = 0; manner < 4; ++manner) {
      std::vector<std::string> sets = {"backend={plugin: cpu, threads: 4, threads_per_stream: 1}"};
      text = add(kMeaning, meaning, &sets);
      const std::string how = add(kManner, manner, &sets);
      const Bytes bytes = train(sets);
      ASSERT_FALSE(bytes.empty()) << text << how;
      if (manner == 0) first = bytes;
      EXPECT_TRUE(bytes == first) << text << how;
    }
    const auto [at, is_new] = seen.emplace(first, text);
    EXPECT_TRUE(is_new) << text << " gives the bits of" << at->second;
  }
  EXPECT_EQ(most_lanes_, 4u);
}

}  // namespace
}  // namespace gradrack
