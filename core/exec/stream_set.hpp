// SPDX-License-Identifier: Apache-2.0
// StreamSet: the streams of one trainer, by device.
//
// Between Device and Executor: executors of one trainer run in turn and share a set; trainers that
// run at once each have their own. Invariant: two sets share a stream only where the device lets
// one of their executors run at a time. [plan]
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/device/device.hpp"

namespace gradrack {

class StreamSet {
 public:
  /// Stream `index` (below max_streams) of `device`, made by the first call and kept. On a device
  /// that is not concurrent it is the device's own, so that there are never more than max_streams.
  Result<gr_stream_t*> stream(Device* device, uint32_t index);

 private:
  std::map<Device*, std::vector<Stream>> own_;
};

}  // namespace gradrack
