// SPDX-License-Identifier: Apache-2.0
// Training where the first device has memory of its own: the same bits as in host memory, whatever
// it claims, on any streams, over any number of microbatches; memory is what was announced.
//
// The device is emulated with the kernels of reference, so that bits can be compared; its memory
// cannot be read by the host (tests/support/emulated_device.hpp).
#include <gtest/gtest.h>

#include "core/train/evaluate.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

using testing::emulated;

class DeviceMemory : public testing::TrainerFixture {
 protected:
  using Sets = std::vector<std::string>;

  /// Everything that persists after three steps, and the loss of an evaluation after them.
  std::vector<std::byte> train(bool cnn, const Sets& sets) {
    const auto made = cnn ? cnn_trainer(sets) : trainer(sets);
    if (made == nullptr) return {};
    steps(*made, 3);
    std::vector<std::byte> all = parameters(*made);
    const auto loss = evaluate(made->programs());
    EXPECT_TRUE(loss.ok()) << loss.status().message();
    const auto* bytes = reinterpret_cast<const std::byte*>(&loss->loss);
    all.insert(all.end(), bytes, bytes + sizeof loss->loss);
    return all;
  }
};

TEST_F(DeviceMemory, TrainsToTheBitsOfReferenceAlone) {
  for (const bool cnn : {false, true}) {
    for (const char* accumulate : {"run.accumulate_steps=1", "run.accumulate_steps=2"}) {
      const auto expected = train(cnn, {accumulate, "backend.plugin=reference"});
      ASSERT_FALSE(expected.empty());
      for (const char* memory : {"device", "handle"}) {
        const std::string options = std::string("memory: ") + memory;
        EXPECT_EQ(train(cnn, {accumulate, emulated(options)}), expected)
            << options << " " << accumulate << " cnn " << cnn;
      }
    }
  }
}

TEST_F(DeviceMemory, NeedsNoBackendInHostMemory) {
  const auto expected = train(false, {"backend.plugin=reference"});
  EXPECT_EQ(train(false, {"backend={plugin: emulated, memory: handle}"}), expected);
}

// What is refused comes from a draw; a device with the same claims in host memory is the measure,
// because a composite that it must decompose rounds in other places.
TEST_F(DeviceMemory, TrainsToTheSameBitsWhateverIsClaimed) {
  for (int seed = 0; seed < 12; ++seed) {
    const bool cnn = seed % 2 != 0;
    const std::string draw = ", threaded: " + std::string(seed % 3 == 0 ? "false" : "true") +
                             ", refuse_percent: 30, seed: " + std::to_string(seed);
    const std::string streams =
        "scheduler={plugin: shuffled, streams: " + std::to_string(1 + seed / 2 % 2) +
        ", auto_off: false, profile: false, seed: " + std::to_string(seed) + "}";
    const std::string accumulate = "run.accumulate_steps=" + std::to_string(1 + seed / 4 % 2);
    const auto expected = train(cnn, {accumulate, emulated("memory: host" + draw)});
    for (const char* memory : {"device", "handle"}) {
      const std::string options = std::string("memory: ") + memory + draw;
      EXPECT_EQ(train(cnn, {accumulate, streams, emulated(options)}), expected)
          << options << " " << streams;
    }
  }
}

TEST_F(DeviceMemory, AnOperatorThatFallsBackIsCountedInCopies) {
  const auto whole = trainer({emulated("memory: device")});
  const auto split = trainer({emulated("memory: device, refuse: gradrack.AdamW Mul")});
  ASSERT_TRUE(whole != nullptr && split != nullptr);
  const auto crossing = [](Trainer& made) {
    size_t count = 0;
    for (const Traffic& t : plan_of(made).traffic) {
      count += t.copies;
    }
    return count;
  };
  const Plan& plan = plan_of(*split);
  ASSERT_EQ(plan.summary[0].handed_on.count("gradrack.AdamW"), 1u);
  const size_t updates = plan.summary[0].handed_on.at("gradrack.AdamW").count;
  EXPECT_EQ(updates, split->programs().planner().parameters().size());
  // Batch and scalars in, results out: as many ports as the plan has, where nothing falls back; and
  // the number of the run, by which a failed step is undone.
  const Plan& alone = plan_of(*whole);
  EXPECT_LE(crossing(*whole), alone.inputs.size() + alone.scalars.size() + alone.outputs.size() +
                                  2 * alone.objectives.size() + 1);
  // Each update reads its parameter and two moments from the device, and writes them back.
  EXPECT_GE(crossing(*split), crossing(*whole) + 6 * updates);
}

TEST_F(DeviceMemory, AnnouncedBytesAreAllocatedBytes) {
  for (const char* options : {"memory: device", "memory: handle, refuse_percent: 30, seed: 2"}) {
    for (const std::string& chain :
         {emulated(options), std::string("backend={plugin: emulated, memory: device}")}) {
      const auto made = trainer({"run.accumulate_steps=2", chain});
      ASSERT_NE(made, nullptr);
      steps(*made, 2);
      EXPECT_EQ(made->programs().planned_bytes(), made->programs().allocated_bytes()) << chain;
    }
  }
}

TEST_F(DeviceMemory, StepWithNonFiniteGradientChangesNothing) {
  const auto made = trainer({emulated("memory: handle, refuse: gradrack.AdamW Mul")});
  ASSERT_NE(made, nullptr);
  expect_non_finite_step_changes_nothing(*made);
}

}  // namespace
}  // namespace gradrack
