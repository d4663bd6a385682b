// SPDX-License-Identifier: Apache-2.0
// Replay: copies a graph node by node into a new one, with a hook that may write something else.
//
// Every rewrite (decomposition, change of precision, folding) is a replay, so that types are
// inferred again and nothing half-rewritten exists. Invariant: after run(), each value of the old
// graph that is still used has an image in the new one; objectives, outputs and writes point to
// images.
#pragma once

#include <functional>
#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack {

class Replay {
 public:
  /// Returns true when it mapped all outputs of the node itself (by map()), false for a plain copy.
  using NodeHook = std::function<Result<bool>(const Node& node, Replay& replay)>;
  /// May change the declaration of a source (or constant) before it is copied.
  using SourceHook = std::function<void(Value& source)>;

  Replay(const Graph& from, Graph& to) : from_(from), to_(to), map_(from.values().size(), -1) {}

  /// Copies sources, constants, nodes in order, then objectives, outputs and writes.
  Status run(const NodeHook& node_hook = {}, const SourceHook& source_hook = {});

  const Graph& from() const { return from_; }
  Graph& to() { return to_; }
  /// Image of an old value; GR_NO_VALUE stays GR_NO_VALUE.
  ValueId image(ValueId old) const;
  std::vector<ValueId> images(const std::vector<ValueId>& old) const;
  void map(ValueId old, ValueId image) { map_[static_cast<size_t>(old)] = image; }
  /// Copies the node with the images of its inputs.
  Status copy(const Node& node);

 private:
  Status copy_source(ValueId id, const SourceHook& hook);

  const Graph& from_;
  Graph& to_;
  std::vector<ValueId> map_;
};

/// Writes the decomposition of (op, inputs, attrs) into `graph`; GR_UNSUPPORTED when it has none.
/// Returns one value per output asked for.
Result<std::vector<ValueId>> emit_decomposition(Graph& graph, const OpDef& op,
                                                const std::vector<ValueId>& inputs,
                                                const Attrs& attrs, size_t outputs);

/// Copy of `graph` in which every node for which `wanted` answers true is decomposed, and the nodes
/// of the decomposition likewise.
Result<Graph> decompose_where(const Graph& graph, const std::function<bool(const Node&)>& wanted);

}  // namespace gradrack
