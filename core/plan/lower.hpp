// SPDX-License-Identifier: Apache-2.0
// Lowering: gives every node a device of the chain, decomposing what a device runs only in parts.
//
// Second step of planning, a replay of a graph: of one part of a step at a time, see
// segment_cache.hpp. A node goes to the first device that claims it, or that claims all nodes of
// its decomposition, and to the next one otherwise. Invariant: every live node of the lowered graph
// is claimed by its device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/fallback.hpp"
#include "core/device/device.hpp"
#include "core/plan/claim.hpp"

namespace gradrack {

/// Nodes of one operator that a device handed on, with the first reason it gave.
struct HandedOn {
  size_t count = 0;
  std::string reason;
};

/// What one device of the chain made of the nodes that reached it.
struct DeviceSummary {
  std::string device;
  size_t native = 0;                             // claimed as they are
  size_t decomposed = 0;                         // run as their decomposition
  std::map<std::string, HandedOn> handed_on;     // by operator
  std::map<std::string, size_t> converted = {};  // of the native: how many, by what is converted
  size_t handed_on_count() const;
  /// "cpu: 120 native (80 float16 computed in float32), 4 decomposed, 2 to the next: 2 Conv (...)".
  std::string text() const;
};

struct Lowered {
  Graph graph;
  std::vector<int32_t> device;  // of each node; 0 for dead nodes and views
  std::vector<Claim> claims;    // of each node
  std::vector<DeviceSummary> summary;
  std::vector<std::string> warnings;  // one a device that handed nodes on (Fallback::kWarn)
  std::vector<int32_t> origin;        // of each node: the node of the given graph that it runs
  std::vector<ValueId> image;         // of each value of the given graph
};

/// Lowers by the chain alone, with neither warnings nor refusals of a fallback. GR_UNSUPPORTED: no
/// device runs a node; all reasons are listed.
Result<Lowered> lower_by_chain(const Graph& graph, const Bindings& bindings,
                               const std::vector<Device*>& devices);

/// Adds what one part came to.
void add_summary(const std::vector<DeviceSummary>& part, std::vector<DeviceSummary>* sum);

/// What `fallback` makes of nodes that were handed on: warnings, or GR_UNSUPPORTED under kStrict.
Result<std::vector<std::string>> judge_fallback(const std::vector<DeviceSummary>& summary,
                                                Fallback fallback);

/// Both in one. GR_UNSUPPORTED as they say.
Result<Lowered> lower(const Graph& graph, const Bindings& bindings,
                      const std::vector<Device*>& devices, Fallback fallback);

}  // namespace gradrack
