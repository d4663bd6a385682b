// SPDX-License-Identifier: Apache-2.0
// StreamSet: the streams of one trainer, by device.
//
// Between Device and Executor: executors of one trainer run in turn and share a set; trainers that
// run at once each have their own. It knows which of their runs were launched and not waited for
// (Executor::launch). Invariant: two sets share a stream only where the device lets one of their
// executors run at a time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/device/device.hpp"

namespace gradrack {

class Executor;

/// How often the host has waited for devices.
struct HostWaits {
  int64_t runs = 0;     ///< until all that was launched is over, which leaves the device idle
  int64_t ports = 0;    ///< to write the ports of an earlier run, with later ones still queued
  int64_t devices = 0;  ///< within runs over several devices, which cannot wait for each other
};

class StreamSet {
 public:
  /// Stream `index` (below max_streams) of `device`, made by the first call and kept. On a device
  /// that is not concurrent it is the device's own, so that there are never more than max_streams.
  /// [plan]
  Result<gr_stream_t*> stream(Device* device, uint32_t index);
  /// Waits for every run that was launched. Errors: the first of theirs; parameters, buffers and
  /// state are then as before the last of them (PlanRequest::undo). [exec]
  Status wait();
  const HostWaits& waits() const { return waits_; }

 private:
  friend class Executor;
  std::map<Device*, std::vector<Stream>> own_;
  Executor* latest_ = nullptr;  // of those launched and not waited for
  HostWaits waits_;
};

}  // namespace gradrack
