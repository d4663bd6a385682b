// SPDX-License-Identifier: Apache-2.0
// PlanClass: what of a plan does not depend on numbers: the lowered graph and its tasks in outline.
//
// Made once for a graph and a chain of devices, from parts that the SegmentCache shares; then bound
// to dims, again and again, without asking for claims (see rebind in plan.hpp). Invariant:
// immutable; groups never cross a segment; tasks are in program order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/plan/fuse.hpp"
#include "core/plan/groups.hpp"
#include "core/plan/partition.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/segment_cache.hpp"

namespace gradrack {

/// The nodes of one kernel and the values at their border.
struct TaskOutline {
  NodeGroup nodes;  // of the lowered graph; of a match, with the views between them
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Match match = {};    // of a pattern; without nodes: none
  size_t leading = 0;  // the node whose kind and stage it has

  /// The nodes as the backend sees them.
  const std::vector<size_t>& in_order() const { return match.nodes.empty() ? nodes : match.nodes; }
  /// As gr_group.pattern counts.
  uint32_t pattern() const { return match.nodes.empty() ? 0 : match.pattern + 1; }
};

/// One stage and direction of the lowered graph.
struct SegmentOutline {
  std::string name;
  bool joint = false;           // of no stage: totals, norm, clipping, what stages share
  bool lowered_anew = false;    // backends were asked for claims
  std::vector<size_t> tasks;    // indices into PlanClass::tasks, ascending
  std::vector<ValueId> values;  // that they touch, in order of first use
  Digest wiring;                // of all that decides their kernels but dims and contents
};

struct PlanClass {
  PlanRequest request;  // without its graph
  Lowered lowered;
  std::vector<std::shared_ptr<const Lowered>> parts;  // what `lowered` was put together from
  std::vector<int32_t> segment;                       // of each node: index below; -1: dead
  std::vector<SegmentOutline> segments;
  std::vector<TaskOutline> tasks;
  std::vector<PatternReport> fusion;
  std::vector<ValueId> root;        // of each value: see Wires
  std::vector<std::string> events;  // fallbacks, groups that were split

  const Device& device_of(const TaskOutline& task) const {
    return *request.devices[size_t(lowered.device[task.nodes[0]])];
  }
};

/// Lowers the graph part by part. Errors: see make_plan. [plan]
Result<std::shared_ptr<PlanClass>> lower_by_parts(const PlanRequest& request);
/// Forms groups and fills tasks and segments; `bound` is the class's lowered graph under the
/// request's bindings. Errors: see fuse. [plan]
Status outline_tasks(const BoundGraph& bound, PlanClass* out);

/// The kernels of segment `index` for the dims of `bound`: shared, or prepared now, which `made`
/// is told. Errors: those of the backends, GR_UNSUPPORTED among them. [plan]
Result<std::shared_ptr<const Segment>> kernels_of(const PlanClass& plan_class, size_t index,
                                                  const BoundGraph& bound, bool* made);

}  // namespace gradrack
