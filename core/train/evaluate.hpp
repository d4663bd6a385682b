// SPDX-License-Identifier: Apache-2.0
// Evaluation: the mean loss over the validation split, or its first batches.
#pragma once

#include "core/train/programs.hpp"

namespace gradrack {

struct ObjectiveMean {
  double sum = 0;
  double targets = 0;  ///< 0: the split has none for it
  double mean() const { return targets > 0 ? sum / targets : 0; }
};

struct Evaluation {
  double loss = 0;     ///< weighted sum of the objectives' means, those with targets
  double targets = 0;  ///< of all objectives
  std::vector<ObjectiveMean> objectives;
  int64_t batches = 0;
  bool partial = false;  ///< a stop signal ended it early
};

/// Batch sizes that evaluation will meet: the full one and, where the split does not divide, the
/// rest. Asks about few batches, however many there are.
Result<std::vector<int64_t>> evaluation_rows(const Feed& feed, int64_t batch, int64_t max_batches);

/// Runs at most run.eval_batches batches (0: all) of run.batch_size rows. The parameters are those
/// in the store. GR_FAILED_PRECONDITION: the split is empty. [exec]
Result<Evaluation> evaluate(Programs& programs);

}  // namespace gradrack
