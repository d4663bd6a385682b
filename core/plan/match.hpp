// SPDX-License-Identifier: Apache-2.0
// Matching: where in a lowered graph a pattern's statements, or a run of its operators, stand.
//
// Looks at operators, wiring and dims alone, and through views. Whether a find may be a group
// (kinds, stages, convexity, the backend's word) says the Judge, who also takes it. Invariant: what
// is found depends on the nodes around the place, in the graph's order, so that equal parts of a
// step get equal groups.
#pragma once

#include <functional>
#include <unordered_map>

#include "core/plan/backend_patterns.hpp"
#include "core/plan/border.hpp"

namespace gradrack {

/// The nodes of one device, as matchers see them.
class MatchSpace {
 public:
  /// All have to stay.
  MatchSpace(const Lowered& lowered, const BoundGraph& bound, const Wires& wires,
             const Grouping& grouping, int32_t device);

  const Graph& graph() const { return *bound_.graph; }
  const Node& node(size_t index) const { return graph().nodes()[index]; }
  /// The operator's full name.
  const std::string& op(size_t node) const { return names_.at(graph().nodes()[node].op); }
  /// Live, no view, of this device and in no group yet.
  bool free(size_t node) const;
  /// Nodes of these operators, ascending.
  std::vector<size_t> nodes_of(const std::vector<std::string>& ops) const;
  /// What a value is a view of, or itself.
  ValueId root(ValueId id) const {
    return id == GR_NO_VALUE ? id : wires_.root[static_cast<size_t>(id)];
  }
  /// Who makes a root in the step: -1 for sources and what is known when planning.
  int32_t maker(ValueId root) const;
  /// Nodes, no views, that read a root or a view of it; ascending, each once.
  std::vector<size_t> readers(ValueId root) const;
  /// No path leaves the nodes and the views between them, and comes back.
  bool convex(const std::vector<size_t>& nodes) const {
    return grouping_.convex(with_views(bound_, wires_, nodes));
  }

 private:
  const Lowered& lowered_;
  const BoundGraph& bound_;
  const Wires& wires_;
  const Grouping& grouping_;
  int32_t device_;
  std::unordered_map<const OpDef*, std::string> names_;
  std::unordered_map<std::string, std::vector<size_t>> by_op_;
};

/// Asked about nodes in the order that a backend will see. True: they are a group now.
using Judge = std::function<Result<bool>(const std::vector<size_t>& nodes)>;

/// Tries all ways in which the pattern's first statement is node `first`, until the judge takes
/// one. Errors: the judge's.
Result<bool> match_statements(const BackendPattern& pattern, const MatchSpace& space, size_t first,
                              const Judge& judge);

/// Grows a run from node `seed` as far as it goes, and with a judge who does not take that, node by
/// node as far as they would. `probe` says whether they would. Errors: the judges'.
Result<bool> match_run(const BackendPattern& pattern, const MatchSpace& space, size_t seed,
                       const Judge& probe, const Judge& judge);

}  // namespace gradrack
