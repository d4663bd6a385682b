// SPDX-License-Identifier: Apache-2.0
// Wires and Border: who reads what in a graph, and what crosses the border of a group.
//
// Used where groups are judged and where they become tasks: both see the same border. A view has no
// bytes of its own: patterns look through it, to its root, which is what their groups show.
#pragma once

#include <vector>

#include "core/plan/groups.hpp"

namespace gradrack {

struct Wires {
  static constexpr int32_t kOutside = -1;  // a result or a write

  std::vector<std::vector<int32_t>> readers;  // of each value: live nodes, views too, or kOutside
  std::vector<ValueId> root;                  // of each value: itself, or what it is a view of
};

Wires find_wires(const BoundGraph& bound);

/// The nodes, and the views by which one of them reads what another makes; ascending.
NodeGroup with_views(const BoundGraph& bound, const Wires& wires, const std::vector<size_t>& nodes);

struct Border {
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// A node alone shows all its ports, in order; of several nodes (ascending), each value once, and
/// only those results that something outside reads.
Border border_of(const BoundGraph& bound, const Wires& wires, const NodeGroup& group);
/// Of a match with its views: each root once. An input may be a view of it.
Border border_of_match(const BoundGraph& bound, const Wires& wires, const NodeGroup& group);

}  // namespace gradrack
