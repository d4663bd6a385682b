// SPDX-License-Identifier: Apache-2.0
// The folder `checkpoints` of a run: what is in it, which of it is good, what may go.
//
// Invariant: only checkpoints with the run's own id are ever removed, and the newest good one of a
// run never is. Anything else that lies there is left alone.
#pragma once

#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/state/checkpoint.hpp"

namespace gradrack {

struct CheckpointEntry {
  int64_t step = 0;  ///< by its name
  std::string path;
  Result<CheckpointManifest> manifest;  ///< files unread
};

/// Every folder `step-N`, by step; none where `folder` is not there. [any]
std::vector<CheckpointEntry> list_checkpoints(const std::string& folder);

/// A checkpoint that was read against its manifest.
struct GoodCheckpoint {
  std::string path;
  CheckpointManifest manifest;
};

/// The newest one of `folder` that is good. Each newer one is passed over with an event
/// "checkpoint_refused" that says why. GR_NOT_FOUND: there is none at all. GR_IO: all are bad.
/// [main]
Result<GoodCheckpoint> newest_good_checkpoint(const std::string& folder, EventSink& events);

/// Which are kept when a new one is written.
struct RotationRule {
  std::string run_id;
  int64_t keep_last = 0;  ///< the newest; 0: all
  int64_t keep_best = 0;  ///< those with the lowest eval_loss, besides
};

/// Removes those of the run that neither rule keeps. `written` is the step just written, which
/// stays. GR_IO: one could not be removed. [any]
Status rotate_checkpoints(const std::string& folder, const RotationRule& rule, int64_t written);

/// Removes what a killed process left half written. Only while no other process writes there.
void remove_unfinished(const std::string& folder);

/// Moves those past `step` to "FOLDER.1/step-N", the first number that is free; returns that
/// folder, empty when there were none. [main]
Result<std::string> set_later_aside(const std::string& folder, int64_t step);

}  // namespace gradrack
