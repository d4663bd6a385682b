// SPDX-License-Identifier: Apache-2.0
// Turn: keeps other executors from devices that stand only one, for as long as it lives.
//
// Part of the executor. Invariant: locks are taken in the order of addresses, so that two executors
// cannot wait for each other.
#pragma once

#include <mutex>
#include <vector>

#include "core/device/device.hpp"

namespace gradrack {

class Turn {
 public:
  /// `held` has room for a lock a device: nothing is allocated.
  Turn(const std::vector<const Device*>& devices, std::vector<std::unique_lock<std::mutex>>* held)
      : held_(*held) {
    for (const Device* device : devices) held_.push_back(device->exec_calls());
  }
  ~Turn() { held_.clear(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::vector<std::unique_lock<std::mutex>>& held_;
};

}  // namespace gradrack
