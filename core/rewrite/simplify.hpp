// SPDX-License-Identifier: Apache-2.0
// Simplification: casts of constants, common subexpressions, no-op removal, dead code.
//
// Runs on the whole step graph before planning. Invariant: never changes a result's bits: it merges
// only nodes that are equal in operator, inputs and attributes (a Cast goes before the views
// between it and what it reads, so that casts of a value and of its views are equal), and keeps the
// order of what is left. What nodes of several stages are merged into is of no stage. Random nodes
// differ in their stream attribute, so they are never merged. Integer contents that are known
// (shapes) become constants later, when a plan binds the symbols.
#pragma once

#include "core/graph/graph.hpp"

namespace gradrack {

struct SimplifyReport {
  size_t nodes_before = 0;
  size_t folded = 0;   // casts of constants
  size_t merged = 0;   // common subexpressions
  size_t removed = 0;  // no-ops: Cast to the same dtype, Identity, Expand to the same shape
  size_t dead = 0;     // results nobody reads
};

/// Returns the simplified graph; sources, objectives, outputs and writes keep their names and
/// order. Sources that nothing reads stay. [plan]
Result<Graph> simplify(const Graph& graph, SimplifyReport* report = nullptr);

}  // namespace gradrack
