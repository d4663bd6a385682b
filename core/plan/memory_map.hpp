// SPDX-License-Identifier: Apache-2.0
// MemoryMap: what lies where in a plan's arenas, and from which task to which.
//
// Beside plan.hpp, for the run's plan.json and for reports. It is a copy: it outlives the plan.
// Invariant: blocks of one device that share bytes share no task, unless streams of the plan say
// that one happens before the other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

struct Plan;

/// Bytes of an arena in use from place `first` in the schedule's order to place `last`.
struct MemoryBlock {
  int64_t device = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
  int32_t kind = -1;      ///< GR_KIND_* of the task that comes first
  std::string name = {};  ///< of that task
};

struct MemoryMap {
  std::string name;                  ///< of the plan: "step"
  int64_t tasks = 0;                 ///< places in the order
  std::vector<std::string> devices;  ///< with an arena or without
  std::vector<int64_t> arena_bytes;  ///< by device
  /// "parameters", ..., "arena": bytes, as announced before the first step.
  std::vector<std::pair<std::string, int64_t>> classes;
  std::vector<MemoryBlock> blocks;
  std::string peak_task;  ///< where most of the arena is in use
  int64_t live_peak = 0;
};

/// At most `most` blocks, the largest ones.
MemoryMap memory_map(const std::string& name, const Plan& plan, size_t most);

/// A picture of one device's arena: the order of tasks to the right, offsets upward.
std::string memory_map_svg(const MemoryMap& map, size_t device);

/// The text of plan.json; docs/formats.md has its keys.
std::string memory_maps_json(const std::vector<MemoryMap>& maps);
/// GR_INVALID_ARGUMENT: not such a text, with what is wrong.
Result<std::vector<MemoryMap>> read_memory_maps(const std::string& json);

}  // namespace gradrack
