// SPDX-License-Identifier: Apache-2.0
// Step variants: the different graphs that the steps of one run need, known before the first.
//
// A variant is all that can differ from one microbatch to the next: its place in the step, the
// objectives that are active and were active, the trained parameters, the sizes of the batch.
// Invariant: step_variants() names exactly those that the run can ask for.
#pragma once

#include <tuple>
#include <vector>

#include "core/data/feed.hpp"
#include "core/optim/objectives.hpp"
#include "core/train/run_rules.hpp"

namespace gradrack {

struct StepVariant {
  StepShape shape;
  ObjectiveSet active = 1;
  ObjectiveSet earlier = 0;  ///< of this step's earlier microbatches
  size_t stretch = 0;        ///< RunRules::stretch(): the trained parameters
  BatchSizes sizes = {};     ///< of the feed's symbols

  bool operator<(const StepVariant& o) const { return order() < o.order(); }

 private:
  std::tuple<bool, bool, ObjectiveSet, ObjectiveSet, size_t, BatchSizes> order() const {
    return {shape.accumulate_in, shape.update, active, earlier, stretch, sizes};
  }
};

/// Every variant of the run's steps, for batches that each have one of `batch_sets` and are of
/// `sizes`. GR_INVALID_ARGUMENT: a step in which a batch would have no active objective. [plan]
Result<std::vector<StepVariant>> step_variants(const RunRules& rules, const RunSection& run,
                                               const std::vector<ObjectiveSet>& batch_sets,
                                               const BatchSizes& sizes);

/// "step", "first microbatch", "next microbatch", "last microbatch".
const char* shape_name(StepShape shape);

}  // namespace gradrack
