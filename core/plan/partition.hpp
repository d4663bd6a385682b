// SPDX-License-Identifier: Apache-2.0
// Partition: the live nodes of a graph by stage and direction, each part by its content.
//
// First step towards shared segments (see segment_cache.hpp): a part is cut out of the step's graph
// and lowered by itself, so that what a backend makes of it depends on the part alone. Invariant:
// two parts of one content are cut into equal graphs, whatever stands around them.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/plan/bind.hpp"
#include "core/plan/content_hash.hpp"

namespace gradrack {

enum class Direction { kForward, kBackward, kUpdate };

/// dX and dW go one way; what is neither forward nor backward is part of the update.
Direction direction_of(int32_t kind);

/// The nodes of one stage and direction.
struct Part {
  std::string stage;  // "": of no stage
  Direction direction = Direction::kForward;
  std::vector<size_t> nodes;       // live ones, ascending
  std::vector<ValueId> externals;  // values they read and do not make, in order of first reading
  std::vector<ValueId> shown;      // their results that something reads, in the part or outside
  /// What the stages of one plan come together in (totals, norm, clipping) or have in common.
  bool joint() const { return stage.empty(); }
  /// "heads.p3.box backward"; "joint update".
  std::string name() const;
};

/// The source that random operators read; the only one that lowering may ask for by name.
inline bool is_rng(const Value& value) {
  return value.source == Source::kScalar && value.name == "rng";
}

/// All parts, in the order of their first nodes.
std::vector<Part> partition(const BoundGraph& bound);

/// Of everything that can decide how `devices` run the part: operators, attributes, wiring, types
/// with names and with numbers, constants, stage and direction. Devices count by identity.
Digest content_of(const BoundGraph& bound, const Part& part, const Bindings& bindings,
                  const std::vector<Device*>& devices);

/// The part as a graph of its own: externals first (constants stay constants, the rest are inputs),
/// its nodes in order, shown values as outputs.
Result<Graph> cut(const Graph& graph, const Part& part);

}  // namespace gradrack
