// SPDX-License-Identifier: Apache-2.0
// Private to simulate/orders: one pipeline schedule out of a few choices, built wave by wave.
//
// After a warm-up of forwards on every device, microbatch by microbatch a wave of B runs from the
// last device to the first and a wave of F from the first to the last. As waves are placed in the
// order of their dependencies, the wait before each task is known exactly when it is placed, and a
// W goes in where it fits, where memory asks for it, or where the device has waited too much.
// Invariant: the memory limits hold at every point of a schedule that is returned.
#pragma once

#include <cstdint>
#include <vector>

#include "core/simulate/orders/pipeline.hpp"

namespace gradrack {

/// What a pipeline costs, by device.
struct PipelineCosts {
  struct Stage {
    int64_t time[3] = {0, 0, 0};  ///< of F, B, W
    int64_t send_forward = 0;     ///< from its F to the next device
    int64_t send_gradient = 0;    ///< from its B to the device before
    int64_t held = 0;             ///< bytes from the start of F
    int64_t freed[3] = {0, 0, 0};
    int64_t limit = 0;  ///< bytes; INT64_MAX: none
    /// Microbatches whose forwards fit.
    int64_t room() const { return held > 0 ? limit / held : INT32_MAX; }
  };
  std::vector<Stage> stages;
  uint32_t microbatches = 0;
};

/// GR_INVALID_ARGUMENT: dW is not apart, or microbatches differ. GR_FAILED_PRECONDITION: a limit
/// below one microbatch.
Result<PipelineCosts> read_costs(const SimTable& table, const Pipeline& pipeline);

/// The choices of one schedule.
struct WaveChoice {
  std::vector<int64_t> warm_up;   ///< forwards before the first B: falls along the devices
  std::vector<int64_t> patience;  ///< ns that a device may wait in all before W fill every wait
  int64_t overhang_b = 0;         ///< a W may delay a B by this share of its time, percent
  int64_t overhang_f = 0;         ///< the same before an F
  bool fill_before_f = false;     ///< W go before F too
};

class Wavefront {
 public:
  explicit Wavefront(const PipelineCosts& costs) : costs_(costs) {}

  /// Longest time from a device's first start to its last end, over the first `microbatches`;
  /// INT64_MAX when a memory limit cannot be kept with this choice, or when it is above `most`:
  /// given up as soon as a device has waited too much for that.
  int64_t span(const WaveChoice& choice, uint32_t microbatches, int64_t most = INT64_MAX);
  /// Tasks placed so far, by all calls.
  int64_t placed() const { return placed_; }
  /// The lanes of all microbatches under a choice that has a span.
  std::vector<PipelineLane> lanes(const WaveChoice& choice);

 private:
  struct Device {
    int64_t now = 0, waited = 0, first = 0, bytes = 0;
    uint32_t count[3] = {0, 0, 0};
  };
  void put(size_t s, PipelineKind kind, int64_t ready);
  void fill(size_t s, int64_t ready, int64_t overhang);
  bool make_room(size_t s);
  bool too_late(size_t s) const { return devices_[s].waited > most_waited_[s]; }
  int64_t place();
  int64_t input_ready(size_t s, uint32_t microbatch) const;
  int64_t gradient_ready(size_t s, uint32_t microbatch) const;

  const PipelineCosts& costs_;
  const WaveChoice* choice_ = nullptr;
  std::vector<PipelineLane>* record_ = nullptr;
  uint32_t microbatches_ = 0;
  std::vector<Device> devices_;
  std::vector<int64_t> most_waited_;    // by device
  std::vector<int64_t> end_f_, end_b_;  // [device][microbatch]
  int64_t placed_ = 0;
};

}  // namespace gradrack
