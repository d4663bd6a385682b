// SPDX-License-Identifier: Apache-2.0
// Resuming: from what run.resume says to the checkpoint that a run goes on from.
//
// First step of a training run, before anything is planned or written. Invariant: a run that asks
// to go on never begins anew in silence: where checkpoints are there and none is good, that is an
// error.
#pragma once

#include <optional>
#include <string>

#include "core/state/store.hpp"
#include "core/train/session.hpp"
#include "core/train/trainer_state.hpp"

namespace gradrack {

struct ResumePoint {
  std::string path;  ///< of the checkpoint
  bool own = false;  ///< it lies in run.output: the same run goes on
  TrainerState state;
};

/// The checkpoint to go on from, read against its manifest and its configuration checked; nothing:
/// the run begins anew. Events: those of newest_good_checkpoint and check_resumable.
/// GR_FAILED_PRECONDITION: run.resume is empty and run.output holds a run that has not ended.
/// GR_NOT_FOUND, GR_IO: run.resume names none that is good. [main]
Result<std::optional<ResumePoint>> find_resume_point(Session& session);

/// Writes every tensor of `store` but accumulators from the checkpoint. GR_INVALID_ARGUMENT: a
/// tensor is missing or another than the store's; one that the store lacks. [main]
Status load_checkpoint(const std::string& path, Store* store);

}  // namespace gradrack
