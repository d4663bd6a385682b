// SPDX-License-Identifier: Apache-2.0
// Recomputation: results of forward nodes are let go of, and made once more where the backward pass
// reads them.
//
// Runs on the simplified step graph, before planning; what is worth letting go of is somebody
// else's decision (plan/recompute_table.hpp). A clone has operator, attributes and, in bits, inputs
// of its original, the stream of a random node among them, so no gradient changes. Invariants: a
// clone stands right before the first node that reads it, and waits by gradrack.After for the
// gradient with which the reader's stage begins, whatever the schedule; it is an input gradient by
// kind, for backward waits for it; forward nodes and their readers elsewhere stay as they are.
#pragma once

#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack {

/// A gradient to an input or to a weight.
bool is_backward(const Node& node);

/// Before the backward pass of stage `before` begins, the results of `nodes` (ascending; each with
/// may_forget) are forgotten: it, and what stage by stage follows it, makes what it needs of them
/// anew.
struct Forget {
  int32_t before = -1;
  std::vector<size_t> nodes = {};
};

/// A part of the forward pass in program order, up to a stage that has a backward pass.
struct ForwardBlock {
  int32_t begins = -1;               // the stage with whose backward pass the block's begins
  std::vector<int32_t> stages = {};  // that, after those before it that have none
  std::vector<size_t> nodes = {};    // forward nodes that may be forgotten, ascending
};

/// Where the backward pass of a stage begins: at its first backward node that reads a result of the
/// forward pass. One entry a pass and stage, in program order.
struct BackwardBegin {
  int32_t stage = -1;
  size_t node = 0;
};
std::vector<BackwardBegin> backward_begins(const Graph& graph);

/// Whether running the node twice gives the same, and is worth a thought: a forward node of a stage
/// that reads something, whose results are not known beforehand.
bool may_forget(const Graph& graph, const Node& node);

/// In the order of their first nodes. Forward nodes behind the last block are in none.
std::vector<ForwardBlock> forward_blocks(const Graph& graph);

/// Every block is forgotten before its own backward pass, but the last one, whose backward pass
/// follows at once.
std::vector<Forget> forget_blocks(const std::vector<ForwardBlock>& blocks);

struct Recomputed {
  Graph graph;
  std::vector<size_t> cloned;  // nodes of the old graph, one entry a clone; views too
};

/// `graph` with that forgotten. Errors: those of Graph::add_node. [plan]
Result<Recomputed> recompute(const Graph& graph, const std::vector<Forget>& forgets);

}  // namespace gradrack
