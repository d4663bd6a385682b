// SPDX-License-Identifier: Apache-2.0
// Recorder: turns the steps of an executor into a few replays, by gr.capture/1 of the backends.
//
// The steps are cut into sections, one after the other: within a section everything that a device
// has to do is one recording (or one a lane, where the backend does not record events), and nothing
// in it waits for anything else in the section. What stands between sections is done by the host:
// waits before them, records behind them. A device without the extension, and a step that its
// backend cannot record, is launched as ever. Invariant: the actions do what plain_actions() would,
// in an order that the schedule allows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/exec/action.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

/// Owner of a recording. [plan]
class Recording {
 public:
  Recording(const Device* device, const gr_capture_t* capture, gr_recording_t* handle)
      : device_(device), capture_(capture), handle_(handle) {}
  Recording(Recording&& other) noexcept
      : device_(other.device_), capture_(other.capture_), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  Recording& operator=(Recording&&) = delete;
  ~Recording();
  gr_recording_t* get() const { return handle_; }

 private:
  const Device* device_;
  const gr_capture_t* capture_;
  gr_recording_t* handle_;
};

struct RecordedSteps {
  std::vector<Action> actions;        // point into the steps that were given and into `streams`
  std::vector<Recording> recordings;  // and some that were given up
  std::vector<std::unique_ptr<std::vector<gr_stream_t*>>> streams;  // of each recording
  size_t recorded = 0;                                              // steps that are replayed
  std::vector<std::string> notes;                                   // why others are not
};

/// Records `steps`, which stay where they are, into `out`; `plan` names their tasks. Nothing of
/// them runs. Whoever calls holds the devices' exec_calls(), and has let go of them when `out`
/// ends. Errors: those of backends, but for GR_UNSUPPORTED, which becomes a note. [exec]
Status record_steps(const Plan& plan, std::span<const Step> steps, RecordedSteps* out);

}  // namespace gradrack
