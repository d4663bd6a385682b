// SPDX-License-Identifier: Apache-2.0
// Groups: which nodes become one kernel, in an order that is legal for whole groups.
//
// Between lowering and tasks. Backends propose groups by number; one is taken when it is convex (no
// path leaves it and comes back), so that one kernel can run it, and split into single nodes
// otherwise. Invariant: each live node that needs a kernel is in exactly one group; groups are in a
// legal order, nearest to the graph's.
#pragma once

#include <string>
#include <vector>

#include "core/plan/lower.hpp"

namespace gradrack {

/// Nodes of one kernel, ascending.
using NodeGroup = std::vector<size_t>;

/// `events` gets a line for each proposal that was split, with the reason.
std::vector<NodeGroup> form_groups(const Lowered& lowered, const BoundGraph& bound,
                                   std::vector<std::string>* events);

}  // namespace gradrack
