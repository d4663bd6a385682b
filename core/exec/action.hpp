// SPDX-License-Identifier: Apache-2.0
// Step and Action: what a run does, as flat arrays with everything resolved to addresses.
//
// A step is a task of the plan; an action is one call of a backend. The executor makes the steps,
// and from them a list of actions: one launch after the other (plain_actions), or replays of what
// was recorded (recorder.hpp). Invariant: performing an action allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/device.hpp"
#include "gradrack/capture.h"
#include "gradrack/timing.h"

namespace gradrack {

/// Before a step: its lane waits for the event that marks the end of another step.
struct StepWait {
  uint32_t on = 0;  // index into the steps
  gr_event_t* event = nullptr;
};

struct Step {
  const Device* device = nullptr;
  gr_stream_t* stream = nullptr;
  uint32_t lane = 0;
  uint32_t task = 0;
  gr_kernel_t* kernel = nullptr;  // null: a copy of the first input to the first output
  DLTensor* const* inputs = nullptr;
  DLTensor* const* outputs = nullptr;
  const DLTensor* workspace = nullptr;
  gr_event_t* record = nullptr;  // null: nobody waits for it
  std::span<const StepWait> waits;
};

struct Action {
  enum Kind : uint8_t {
    kWait,      // `stream` waits for `event`
    kHostWait,  // the host waits for `event`: events do not cross devices
    kLaunch,    // `step`
    kRecord,    // `event`, on `stream`
    kReplay,    // `recording`, on `streams`
    kMark       // `mark`, on `stream`
  };
  Kind kind = kLaunch;
  const gr_backend_t* backend = nullptr;  // of the event, or of the step
  gr_stream_t* stream = nullptr;
  gr_event_t* event = nullptr;
  const Step* step = nullptr;
  const gr_capture_t* capture = nullptr;
  gr_recording_t* recording = nullptr;
  std::span<gr_stream_t* const> streams = {};
  const gr_timing_t* timing = nullptr;
  gr_mark_t* mark = nullptr;
};

/// Queues the step's kernel or copy. A status of the backend.
int32_t launch(const Step& step, gr_error_t* err);
int32_t perform(const Action& action, gr_error_t* err);

/// The action by which the lane of `step` waits for `wait`, a step of `steps`.
Action wait_action(std::span<const Step> steps, const Step& step, const StepWait& wait);
Action record_action(const Step& step);
Action launch_action(const Step& step);
/// Each step with its waits before and its event behind it. The actions point into `steps`.
std::vector<Action> plain_actions(std::span<const Step> steps);

}  // namespace gradrack
