// SPDX-License-Identifier: Apache-2.0
// BuilderApi: the C table gr_graph_api_t over a Graph, as plugins see it.
//
// Invariant: everything a plugin passes is checked here before it reaches the graph; no exception
// leaves. Lives during the plugin's call. [plan]
#pragma once

#include <deque>
#include <map>
#include <string>

#include "core/graph/graph.hpp"

namespace gradrack {

class BuilderApi {
 public:
  /// `keep_outputs`: false leaves the outputs out that the plugin adds, with what only they read.
  explicit BuilderApi(Graph& graph, bool keep_outputs = true)
      : graph_(graph), keep_outputs_(keep_outputs) {}
  BuilderApi(const BuilderApi&) = delete;
  BuilderApi& operator=(const BuilderApi&) = delete;

  /// What to hand to a plugin; valid as long as this object.
  gr_builder_t builder();

  Graph& graph() { return graph_; }
  /// Dims of the ABI as a Shape; symbols are names, or texts that type_of gave out.
  Result<Shape> shape_from(const gr_dim_t* dims, uint32_t rank) const;
  Status add_output(std::string name, ValueId value);
  /// Text of a dim that lives as long as this object.
  const char* keep_text(const Dim& dim);

 private:
  Graph& graph_;
  const bool keep_outputs_;
  std::deque<std::string> texts_;
  std::map<std::string, Dim, std::less<>> given_;
};

/// ConstantData of a dense host tensor.
Result<ConstantData> constant_from(const DLTensor& tensor);

}  // namespace gradrack
