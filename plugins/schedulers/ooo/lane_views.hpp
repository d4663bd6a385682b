// SPDX-License-Identifier: Apache-2.0
// LaneViews: what each lane surely knows while tasks are placed one after the other.
//
// A lane has surely seen the end of a task that comes before in its own row, or that something it
// depends on has seen (vector clocks; the host's waits make just this order true). Bytes are
// given back, in a lane's view, when it has seen all of their users end. Invariant: of buffers that
// may be live at once the one that is made last is placed when the others are all in the view of
// its lane, so the largest view bounds what they take together (peak.hpp says what they do).
#pragma once

#include "task_graph.hpp"

namespace ooo {

class LaneViews {
 public:
  explicit LaneViews(const TaskGraph& graph);

  /// Places `task` next on `lane`. Bytes that may be live while it runs.
  int64_t place(uint32_t task, uint32_t lane);
  /// What place() would answer, or more: where that is still at most `enough`, or after a number of
  /// calls that had to look far.
  int64_t peek(uint32_t task, uint32_t lane, int64_t enough);

 private:
  int64_t made(uint32_t task) const;
  void meet_deps(uint32_t task, uint32_t lane);
  void see(uint32_t lane, uint32_t other, uint32_t end);
  void see_end(uint32_t lane, uint32_t task);
  void take_back(uint32_t lane, uint32_t task);

  const TaskGraph& graph_;
  size_t lanes_;
  std::vector<std::vector<uint32_t>> rows_;
  std::vector<uint32_t> lane_;
  std::vector<uint32_t> place_;
  std::vector<uint32_t> seen_;              // [lane][other]: tasks of other's row
  std::vector<uint32_t> start_;             // [task][lane]: seen_ of its lane when it starts
  std::vector<uint32_t> left_;              // [lane][buffer]: users that the lane has not seen end
  std::vector<int64_t> live_;               // [lane]: bytes in its view
  static constexpr int64_t kPatience = 32;  // ends looked at for each task

  std::vector<uint32_t> before_;
  int64_t patience_;  // ends that peek() may still look at
};

}  // namespace ooo
