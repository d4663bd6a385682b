// SPDX-License-Identifier: Apache-2.0
// evaluate: runs a graph node by node on a chain of backends, without the host's plans.
//
// The host's lowering says which backend runs what; every node is then launched alone, its values
// held in host memory between launches. Invariant: uses no plan, schedule or arena, so that a fault
// found here is the backend's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/lower.hpp"
#include "sdk/conformance/backend_kernel.hpp"

namespace gradrack::conform {

struct Evaluation {
  std::vector<HostArray> outputs;      ///< of the graph's outputs, in order
  std::vector<DeviceSummary> summary;  ///< of each backend of the chain
  std::vector<std::string> faults;     ///< promises broken by the first backend
};

/// `sources`: contents by name. All dims are numbers. Errors: those of lowering (GR_UNSUPPORTED: no
/// backend of the chain runs a node) and of the backends.
Result<Evaluation> evaluate(const Graph& graph, const std::map<std::string, HostArray>& sources,
                            const std::vector<const Rig*>& chain);

/// Nodes of this stage are no part of what a cell is about: see cover_of.
inline constexpr const char* kObjectiveStage = "objective";

/// How the first backend of the chain runs nodes of at least `least_kind` (GR_KIND_*) that are not
/// of kObjectiveStage.
enum class Cover { kNative, kDecomposed, kOther };
const char* cover_name(Cover cover);
/// kOther: the chain's next backend, or none of it, runs some of them.
Result<Cover> cover_of(const Graph& graph, int32_t least_kind,
                       const std::vector<const Rig*>& chain);

}  // namespace gradrack::conform
