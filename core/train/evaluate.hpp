// SPDX-License-Identifier: Apache-2.0
// Evaluation: the mean loss over the validation split, or its first batches.
#pragma once

#include "core/train/programs.hpp"

namespace gradrack {

struct Evaluation {
  double loss = 0;  ///< summed loss over all targets / number of targets
  double targets = 0;
  int64_t batches = 0;
  bool partial = false;  ///< a stop signal ended it early
};

/// Batch sizes that evaluation will meet: the full one and, where the split does not divide, the
/// rest.
Result<std::vector<int64_t>> evaluation_rows(const Feed& feed, int64_t batch, int64_t max_batches);

/// Runs at most `max_batches` batches (0: all) of `batch` rows. The parameters are those in the
/// store. GR_FAILED_PRECONDITION: the split is empty. [exec]
Result<Evaluation> evaluate(Programs& programs, Feed& feed, int64_t batch, int64_t max_batches);

}  // namespace gradrack
