// SPDX-License-Identifier: Apache-2.0
// TrainerState: the numbers of a run between two steps, and their form on disk (state.json).
//
// With the tensors of the store this is all that a run goes on from: batches, dropout and rates are
// pure functions of these numbers and the configuration. Documented in docs/formats.md; a change of
// meaning is a new `format`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/status.hpp"
#include "gradrack/loss_scale.h"

namespace gradrack {

struct TrainerState {
  std::string run_id;
  int64_t step = 0;                       ///< optimizer steps tried
  int64_t updates = 0;                    ///< of those, the ones that changed parameters
  std::map<std::string, int64_t> counts;  ///< of those, by class of counts: "step.number"
  int64_t tokens = 0;                     ///< targets seen
  int64_t next_batch = 0;                 ///< index of the first training batch not yet used
  std::optional<double> eval_loss;        ///< of the last evaluation
  std::optional<double> best;             ///< the lowest so far
  bool finished = false;                  ///< run.max_steps was reached, the last evaluation made
  int64_t nonfinite = 0;                  ///< steps skipped for gradients that were not finite
  int64_t nonfinite_row = 0;              ///< of those, the last ones in a row
  std::optional<gr_loss_scale_state_t> loss_scale;  ///< where the precision policy has one
  std::string data_fingerprint;                     ///< Feed::fingerprint
  std::string config;                               ///< as resolved, YAML
};

std::string to_json(const TrainerState& state);

/// `name` stands in errors. GR_IO: the text is no such state, or one of another format; says which
/// key.
Result<TrainerState> parse_trainer_state(const std::string& text, const std::string& name);

/// Of the checkpoint in folder `checkpoint`. GR_IO: it cannot be read, or as above.
Result<TrainerState> read_trainer_state(const std::string& checkpoint);

/// 16 hexadecimal digits that no other run has.
std::string new_run_id();

}  // namespace gradrack
