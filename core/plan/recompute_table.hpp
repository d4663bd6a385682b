// SPDX-License-Identifier: Apache-2.0
// A step's graph as a chain of blocks with bytes and costs, and the chain's answer as nodes to
// forget.
//
// Between the simplified graph and core/rewrite/recompute.hpp. Bytes are those of values in program
// order, costs those of work.hpp; what kernels need besides (workspaces, alignment, gaps) only the
// planned arena knows. Invariant: whatever the figures are, the answer is a legal one.
#pragma once

#include <string>
#include <vector>

#include "core/plan/bind.hpp"
#include "core/plan/recompute_chain.hpp"
#include "core/rewrite/recompute.hpp"

namespace gradrack {

struct RecomputeTable {
  std::vector<ForwardBlock> blocks;  // at most ChainSolver::kMostBlocks: neighbours are merged
  std::vector<ChainBlock> chain;     // the same as numbers
  /// By block and option: nodes that are made anew in the block's backward pass.
  std::vector<std::vector<std::vector<size_t>>> again;
  int64_t peak_bytes = 0;  // most bytes live at once when nothing is recomputed
};

/// `bound`: a step's graph, simplified, before anything is recomputed. [plan]
RecomputeTable recompute_table(const BoundGraph& bound);

/// Most bytes live at once in program order, of values that are made in the course of the step.
int64_t live_peak_bytes(const BoundGraph& bound);

/// What to forget, by a plan for the table's chain.
std::vector<Forget> forgets_of(const RecomputeTable& table, const ChainPlan& plan);

/// What recomputing costs and brings, for people and for choosing.
struct RecomputeCost {
  size_t nodes = 0;                                         // clones that need a kernel
  int64_t flops = 0;                                        // of theirs
  int64_t step_flops = 0;                                   // of the step without them
  std::vector<std::pair<std::string, size_t>> stages = {};  // and their clones, forward order
};
RecomputeCost cost_of_clones(const BoundGraph& bound, const std::vector<size_t>& cloned);

}  // namespace gradrack
