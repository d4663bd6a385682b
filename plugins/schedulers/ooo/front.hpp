// SPDX-License-Identifier: Apache-2.0
// Front: of the plans tried, those that none beats in both time and memory.
//
// A limit on memory only chooses from it, so a larger limit never gets a slower plan.
#pragma once

#include <optional>

#include "peak.hpp"

namespace ooo {

struct Candidate {
  Plan plan;
  int64_t makespan_ns = 0;
  int64_t peak_bytes = 0;
};

class Front {
 public:
  explicit Front(const TaskGraph& graph) : graph_(graph) {}

  /// Takes `plan` unless one that is there is as good; `renew`: in place of an equal one, too.
  void offer(Candidate made, bool renew = false);
  Candidate weigh(Plan plan) const;
  /// Offers `plan`, which is taken at equal time, whatever it holds, where it keeps the limit.
  void favour(Plan plan);
  /// Ascending in time, descending in memory.
  const std::vector<Candidate>& candidates() const { return candidates_; }
  /// The fastest within `limit` bytes, or null.
  const Candidate* best(int64_t limit) const;
  int64_t least_bytes() const { return candidates_.back().peak_bytes; }

 private:
  const TaskGraph& graph_;
  std::vector<Candidate> candidates_;
  std::optional<Candidate> favourite_;
};

}  // namespace ooo
