// SPDX-License-Identifier: Apache-2.0
// Several trainers in one process, a thread each: they share devices and plans, and give the bits
// of one that runs alone.
#include <gtest/gtest.h>

#include <thread>

#include "core/train/evaluate.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

constexpr int kSteps = 8;

class SeveralTrainers : public testing::TrainerFixture {
 protected:
  using Sets = std::vector<std::string>;

  /// What persists after kSteps steps, and the loss of an evaluation after them.
  static std::vector<std::byte> train(Trainer& trainer) {
    steps(trainer, kSteps);
    std::vector<std::byte> all = parameters(trainer);
    const auto result = evaluate(trainer.programs());
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    const auto* bytes = reinterpret_cast<const std::byte*>(&result->loss);
    all.insert(all.end(), bytes, bytes + sizeof result->loss);
    return all;
  }

  void expect_bits_of_one_alone(const Sets& sets, size_t count) {
    std::vector<std::vector<std::byte>> alone;
    size_t plans = 0;
    for (size_t k = 0; k < count; ++k) {
      const auto made = stems_trainer(with_seed(sets, k));
      ASSERT_NE(made, nullptr);
      plans = made->programs().plans().size();
      alone.push_back(train(*made));
    }
    const std::unique_ptr<Session> session = stems_session(sets);
    ASSERT_NE(session, nullptr);
    auto machine = make_machine(*session);
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (size_t k = 0; k < count; ++k) {
      trainers.push_back(stems_trainer(with_seed(sets, k), *machine));
      ASSERT_NE(trainers.back(), nullptr);
    }
    EXPECT_EQ((*machine)->plans.statistics().builds, static_cast<int64_t>(plans));
    std::vector<std::vector<std::byte>> together(count);
    std::vector<std::thread> threads;
    for (size_t k = 0; k < count; ++k) {
      threads.emplace_back([&, k] { together[k] = train(*trainers[k]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t k = 0; k < count; ++k) EXPECT_EQ(together[k], alone[k]) << k;
    EXPECT_EQ((*machine)->plans.statistics().builds, static_cast<int64_t>(plans));
    trainers.clear();  // before the machine's session
    machine->reset();
  }

 private:
  static Sets with_seed(Sets sets, size_t k) {
    sets.push_back("run.seed=" + std::to_string(k + 1));
    return sets;
  }
};

TEST_F(SeveralTrainers, GiveTheBitsOfOneAlone) {
  for (const char* backend : {"backend.plugin=reference", "backend={plugin: cpu, threads: 1}"}) {
    expect_bits_of_one_alone({backend, "data.point_every=2"}, 4);
  }
}

TEST_F(SeveralTrainers, GiveTheBitsOfOneAloneOnADeviceOfItsOwnMemory) {
  expect_bits_of_one_alone({testing::emulated("memory: device, threaded: true"),
                            "data.point_every=2", "run.accumulate_steps=2"},
                           2);
}

TEST_F(SeveralTrainers, LengthsOfTheirOwnAreBoundWhileOthersRun) {
  expect_bits_of_one_alone({"backend.plugin=reference", "data.lengths=[3, 9, 5, 4]"}, 3);
}

TEST_F(SeveralTrainers, AnotherChainThanTheMachinesIsRefused) {
  const std::unique_ptr<Session> session = stems_session({"backend.plugin=reference"});
  const std::unique_ptr<Session> other = stems_session({"backend={plugin: cpu, threads: 1}"});
  ASSERT_TRUE(session != nullptr && other != nullptr);
  const auto machine = make_machine(*session);
  ASSERT_TRUE(machine.ok());
  const Status status = Programs::make(*other, *machine).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("the devices of this process are reference"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace gradrack
