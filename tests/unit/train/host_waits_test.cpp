// SPDX-License-Identifier: Apache-2.0
// How often a training step waits for its device, counted where the device is called: once, however
// many microbatches it has, and whatever its precision.
//
// tests/accept/optim-precision shows the line that is printed.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/emulated_device.hpp"
#include "tests/unit/train/trainer_fixture.hpp"

namespace gradrack {
namespace {

using testing::emulated;

class HostWaitsOfAStep : public testing::TrainerFixture {
 protected:
  struct Counts {
    int64_t streams = 0, events = 0;
  };

  static Counts now(Trainer& trainer) {
    const gr_backend_t& table = *trainer.setup().machine->devices.front()->backend();
    const auto* waits = static_cast<const gradrack::emulated::Waits*>(
        table.get_extension(table.self, gradrack::emulated::kWaitsExtension));
    if (waits == nullptr) return {};
    return {waits->streams, waits->events};
  }

  /// Of each of some steps, on a device with memory of its own.
  void expect_one_wait_a_step(const std::string& precision, int microbatches,
                              const std::string& more = "") {
    const auto made = trainer({"backend={plugin: emulated, threaded: true" + more + "}",
                               "run.accumulate_steps=" + std::to_string(microbatches),
                               "precision={plugin: " + precision + "}"});
    ASSERT_NE(made, nullptr);
    steps(*made, 1);
    constexpr int kSteps = 5;
    const Counts before = now(*made);
    const HostWaits told = made->programs().waits();
    steps(*made, kSteps);
    const Counts after = now(*made);
    const size_t streams = plan_of_last(*made).schedule.lanes.size();
    const auto waits = static_cast<double>(after.streams - before.streams) / kSteps;
    EXPECT_EQ(waits, static_cast<double>(streams)) << precision;
    // Before a batch is written over the last but one, with the last still queued.
    EXPECT_EQ(after.events - before.events, kSteps * std::max(0, microbatches - 4)) << precision;
    const HostWaits& tells = made->programs().waits();
    EXPECT_EQ(tells.runs - told.runs, kSteps) << "what the host says of it";
    EXPECT_EQ(tells.ports - told.ports, kSteps * std::max(0, microbatches - 4));
    EXPECT_EQ(tells.devices, 0);
    std::printf("waits a step: %s, %d microbatches: %.2f\n", precision.c_str(), microbatches,
                waits / static_cast<double>(streams));
  }

 private:
  static const Plan& plan_of_last(Trainer& trainer) {
    StepVariant variant;
    const bool several = trainer.programs().run().accumulate_steps > 1;
    variant.active = trainer.programs().rules().all();
    if (several) variant.earlier = variant.active;
    variant.shape = {several, true};
    return (*trainer.programs().step(variant))->executor->plan();
  }
};

TEST_F(HostWaitsOfAStep, AreOneWithoutAccumulation) { expect_one_wait_a_step("fp32", 1); }

TEST_F(HostWaitsOfAStep, AreOneWhateverThePrecision) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) expect_one_wait_a_step(precision, 4);
}

TEST_F(HostWaitsOfAStep, AreOneOverManyMicrobatches) {
  expect_one_wait_a_step("fp32", 9, ", memory: handle");
}

}  // namespace
}  // namespace gradrack
