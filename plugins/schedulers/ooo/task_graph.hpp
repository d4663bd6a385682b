// SPDX-License-Identifier: Apache-2.0
// TaskGraph: a schedule request in the form in which the search walks it.
//
// First step of `ooo`. Tasks are numbered as in the request. A lane is a stream; collectives have a
// lane of their own behind the streams, as they keep a link busy and no compute. Invariant: it
// depends on the request alone, but not on its memory limit.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gradrack/scheduler.hpp"

namespace ooo {

inline constexpr uint32_t kNone = ~0u;  // no task
/// Of bytes or time, where there is none.
inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

/// Bytes that tasks share. `users[0]` makes them: all others depend on it.
struct Buffer {
  int64_t bytes = 0;
  bool kept = false;  // to the end of the step
  std::vector<uint32_t> users;
};

struct TaskGraph {
  TaskGraph(const gradrack::sdk::Tasks& tasks, uint32_t wanted_streams);

  uint32_t size() const { return static_cast<uint32_t>(cost.size()); }
  bool on_link(uint32_t task) const { return kind[task] == GR_KIND_COLLECTIVE; }
  bool is_weight_gradient(uint32_t task) const { return kind[task] == GR_KIND_WEIGHT_GRADIENT; }

  uint32_t streams = 1;
  uint32_t lanes = 1;
  int64_t wait_ns = 0;        // from the end of a task to the start of one of another lane
  std::vector<int64_t> cost;  // ns
  std::vector<int32_t> kind;
  std::vector<int32_t> stage;
  std::vector<std::vector<uint32_t>> deps;
  std::vector<std::vector<uint32_t>> readers;
  std::vector<Buffer> buffers;
  std::vector<std::vector<uint32_t>> uses;  // of each task: indices of buffers
  /// Bytes given back at a task's end, whatever else has run: of hosts that tell no buffers.
  std::vector<int64_t> freed;
  /// Time from a task's start to the end of the longest chain that begins with it.
  std::vector<int64_t> rank;
  int64_t sequential_ns = 0;
  int64_t bound_ns = 0;  // nothing is faster: the longest chain, or the work shared evenly

 private:
  void read_tasks(const gradrack::sdk::Tasks& tasks);
  void read_buffers(const gradrack::sdk::Tasks& tasks);
  void rank_tasks();
};

}  // namespace ooo
