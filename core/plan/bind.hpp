// SPDX-License-Identifier: Apache-2.0
// BoundGraph: a graph with its symbols bound to numbers, and what of it is needed.
//
// First step of planning. Invariant: a value whose integer contents are known, and every constant,
// has its bytes here and needs no node; only nodes on the way to a write, an output or an objective
// are live. The graph stays as it is and must outlive this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.hpp"
#include "core/graph/graph.hpp"

namespace gradrack {

struct BoundValue {
  bool used = false;          // read or made by what is live
  bool constant = false;      // `content` holds its bytes
  std::vector<int64_t> dims;  // when used
  int64_t bytes = 0;
  std::vector<std::byte> content;
};

struct BoundGraph {
  const Graph* graph = nullptr;
  std::vector<BoundValue> values;  // by ValueId
  std::vector<bool> live;          // by node

  const BoundValue& at(ValueId id) const { return values[static_cast<size_t>(id)]; }
  /// True for a node that needs a kernel: live and no view.
  bool needs_kernel(size_t node) const { return live[node] && !graph->nodes()[node].op->view; }
};

/// GR_INVALID_ARGUMENT: a symbol is not bound, or a dim comes out negative, naming the value's
/// maker; GR_UNSUPPORTED: a constant's dtype has no host conversion.
Result<BoundGraph> bind_graph(const Graph& graph, const Bindings& bindings);

/// The contents of a constant as elements of `dtype`. GR_UNSUPPORTED as above.
Status write_constant(gr_dtype_t dtype, const ConstantData& data, void* out);

}  // namespace gradrack
