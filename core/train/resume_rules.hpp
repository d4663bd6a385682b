// SPDX-License-Identifier: Apache-2.0
// What may change between the parts of a run, and what must not.
//
// Keys that decide the bits of a run must be what they were: model, data, optimizer, rates,
// precision, seed, batches. Free are its length and rhythm, logging, streams, memory, checkpoints,
// where plugins are looked for. Backends and the paths of data files may change aloud: the run goes
// on, with the bits of the new device; data is held to its fingerprint besides.
#pragma once

#include "core/train/session.hpp"
#include "core/train/trainer_state.hpp"

namespace gradrack {

/// Checks the session's configuration against the one that `state` was saved with. What changed
/// aloud is an event "resume_changed". GR_INVALID_ARGUMENT: place, key, got, wanted, of the first
/// key that must not change, or max_steps before the state's step. [main]
Status check_resumable(Session& session, const TrainerState& state, const std::string& checkpoint);

/// GR_INVALID_ARGUMENT: run.max_steps, known by now, comes before the state's step. [main]
Status check_horizon(const Session& session, const TrainerState& state,
                     const std::string& checkpoint);

}  // namespace gradrack
