// SPDX-License-Identifier: Apache-2.0
// Groups: which nodes become one kernel, in an order that is legal for whole groups.
//
// Between lowering and tasks. Groups come from backends, by number (claims), and from the matches
// of their patterns (fuse.hpp); one is taken when it is convex (no path leaves it and comes back,
// through other groups either), so that one kernel can run it. Invariant: each live node that needs
// a kernel is in exactly one group; groups are in a legal order, nearest to the graph's.
#pragma once

#include <string>
#include <vector>

#include "core/plan/lower.hpp"

namespace gradrack {

/// Nodes of one kernel, ascending. Views may be among them.
using NodeGroup = std::vector<size_t>;

/// Units of nodes: at first each node alone, views too, later also groups that were taken.
class Grouping {
 public:
  /// Both have to stay.
  Grouping(const Lowered& lowered, const BoundGraph& bound);

  /// True for a node that is in no group yet.
  bool alone(size_t node) const { return members_[unit_[node]].size() == 1; }
  /// No path leaves the nodes, each alone, and comes back. Looks no further than where they stand.
  bool convex(const NodeGroup& group) const;
  /// Makes one unit of them; false, and nothing done, where they are not convex.
  bool take(const NodeGroup& group);
  /// Units with a kernel in topological order, the one with the earliest node first.
  std::vector<NodeGroup> order() const;

 private:
  bool reach(const NodeGroup& group, std::vector<size_t>* behind) const;
  bool has_kernel(size_t unit) const;

  const BoundGraph& bound_;
  std::vector<size_t> unit_;                // of each node: the first node of its group
  std::vector<NodeGroup> members_;          // of each unit
  std::vector<std::vector<size_t>> after_;  // readers of each node's results
  // A topological order of the units, kept up to date, so that a search has an end.
  std::vector<size_t> place_;  // of each unit
  std::vector<size_t> at_;     // unit at each place, or kVacant
  // Scratch of reach(): marks of the last round.
  mutable std::vector<uint32_t> inside_, seen_;
  mutable uint32_t round_ = 0;
};

/// Takes what backends proposed by number. `events` gets a line for each proposal that was split,
/// with the reason.
void take_proposals(const Lowered& lowered, const BoundGraph& bound, Grouping* grouping,
                    std::vector<std::string>* events);

/// Both: the groups of proposals alone.
std::vector<NodeGroup> form_groups(const Lowered& lowered, const BoundGraph& bound,
                                   std::vector<std::string>* events);

}  // namespace gradrack
