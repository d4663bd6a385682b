// SPDX-License-Identifier: Apache-2.0
// Fusion: patterns of the backends found in a lowered graph, each match one group.
//
// Between lowering and tasks, over the whole step: what stands in other stages decides whether a
// match is convex, so parts cannot be judged alone. Patterns go in the backends' order, places in
// the graph's; each is asked about once (claim_group). Patterns look
// through views: a group has the views between its nodes, and backends see roots. Invariant: the
// nodes of a match are on one device and, but for patterns across, of one kind and stage; a plan
// without fusion gives the same results within the tolerances of its operators.
#pragma once

#include "core/plan/groups.hpp"

namespace gradrack {

/// Which patterns are used: `backend.fuse` of a run file.
struct FuseSwitch {
  bool on = true;
  std::vector<std::string> left_out = {};  // names of patterns

  /// "true", "false", "all but a, b": in keys of plans and for people.
  std::string text() const;
};

/// What came of one pattern.
struct PatternReport {
  std::string device;
  std::string name;
  bool left_out = false;
  size_t groups = 0;
  size_t nodes = 0;    // in them
  size_t refused = 0;  // places that fit and are no group
  std::string reason;  // of the first
  /// "cpu add_norm: 12 groups of 24 nodes; 1 refused (Add: input 0 is float64)".
  std::string text() const;
};

/// A group that a pattern made.
struct Match {
  int32_t device = 0;
  uint32_t pattern = 0;  // as the backend counts
  std::string name;
  std::vector<size_t> nodes;  // in the order of the pattern's statements; a run's ascending
  int64_t cost_ns = 0;        // the backend's estimate; 0: none
};

struct Fusion {
  std::vector<Match> matches;
  std::vector<PatternReport> reports;  // a line a pattern
};

/// Finds and takes matches. Views in them get the match's device. GR_INVALID_ARGUMENT: a backend's
/// pattern is wrong, or `wanted` leaves out one that no device has; errors of claim_group. [plan]
Result<Fusion> fuse(const std::vector<Device*>& devices, const FuseSwitch& wanted,
                    const BoundGraph& bound, Lowered* lowered, Grouping* grouping);

/// The node whose kind and stage a group has. Of several kinds an input gradient's, since others
/// wait for it, otherwise the latest of forward, weight gradient and update.
size_t leading_node(const Graph& graph, const NodeGroup& group);

/// "132 nodes in 45 groups: add_norm 12, swiglu 4; refused: add_norm 1"; "" where nothing matched.
std::string summary_of(const std::vector<PatternReport>& reports);
/// Lines of a plan's fusion for people: patterns with places, then the names of the others.
std::string describe(const std::vector<PatternReport>& reports);

}  // namespace gradrack
