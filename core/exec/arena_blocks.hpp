// SPDX-License-Identifier: Apache-2.0
// ArenaBlocks: memory for the arenas of plans that run in turn, one block a device.
//
// What lies in an arena lives within one run, so a trainer's plans (training, microbatches,
// evaluation) need no more than the largest of their arenas. Invariant: at most one executor over
// the same blocks runs at a time. Knows nothing of offsets, which are the plan's.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "core/plan/plan.hpp"

namespace gradrack {

class ArenaBlocks {
 public:
  /// Blocks that hold the arena of each of `plans`, whose devices outlive them. GR_OUT_OF_MEMORY.
  /// [plan]
  static Result<std::shared_ptr<const ArenaBlocks>> make(std::span<const Plan* const> plans);
  /// Bytes that make() takes.
  static int64_t planned_bytes(std::span<const Plan* const> plans);

  /// They are large enough for `plan`.
  bool hold(const Plan& plan) const;
  /// The block for the arena of device `d` of `plan`. GR_INVALID_ARGUMENT: none is that large.
  Result<const Memory*> block(const Plan& plan, size_t d) const;
  /// On all devices.
  int64_t allocated_bytes() const;

 private:
  std::shared_ptr<Device> host_;  // one plan's own host memory stands for that of every plan
  std::map<const Device*, Memory> blocks_;  // null: host memory of plans' own
};

}  // namespace gradrack
