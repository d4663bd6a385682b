// SPDX-License-Identifier: Apache-2.0
// Step variants: see variants.hpp.
#include "core/train/variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gradrack {

namespace {

// All that the microbatches of a step can be whose batches have one of `active` each.
void add_step(const std::vector<ObjectiveSet>& active, int64_t accumulate, size_t stretch,
              const BatchSizes& sizes, std::set<StepVariant>* out) {
  std::set<ObjectiveSet> earlier = {0};
  for (int64_t micro = 0; micro < accumulate; ++micro) {
    const StepShape shape{micro > 0, micro + 1 == accumulate};
    std::set<ObjectiveSet> then;
    for (const ObjectiveSet before : earlier) {
      for (const ObjectiveSet now : active) {
        out->insert({shape, now, before, stretch, sizes});
        then.insert(before | now);
      }
    }
    // Once no other union comes up, all microbatches up to the last are like this one.
    if (micro > 0 && then == earlier && micro + 2 < accumulate) micro = accumulate - 2;
    earlier = std::move(then);
  }
}

}  // namespace

const char* shape_name(StepShape shape) {
  if (shape.update) return shape.accumulate_in ? "last microbatch" : "step";
  return shape.accumulate_in ? "next microbatch" : "first microbatch";
}

Result<std::vector<StepVariant>> step_variants(const RunRules& rules, const RunSection& run,
                                               const std::vector<ObjectiveSet>& batch_sets,
                                               const BatchSizes& sizes) {
  std::set<StepVariant> found;
  for (size_t stretch = 0; stretch < rules.stretches(); ++stretch) {
    const int64_t begin = rules.begin(stretch);
    const bool last = stretch + 1 == rules.stretches();
    const int64_t end = last ? run.max_steps + 1 : rules.begin(stretch + 1);
    const int64_t length = rules.period(std::max<int64_t>(end - begin, 1));
    std::set<ObjectiveSet> seen;
    for (int64_t step = begin; step < begin + length; ++step) {
      const ObjectiveSet turn = rules.active(step);
      if (!seen.insert(turn).second) continue;
      std::vector<ObjectiveSet> active;
      for (const ObjectiveSet batch : batch_sets) {
        if ((turn & batch) == 0) {
          return invalid_argument(fmt::format(
              "step {}: a batch with {} has no active objective, because run.objectives gives this "
              "step to {}: let one of them be active in every step",
              step, rules.text(batch), turn == 0 ? "none" : rules.text(turn)));
        }
        active.push_back(turn & batch);
      }
      add_step(active, run.accumulate_steps, stretch, sizes, &found);
    }
  }
  return std::vector<StepVariant>(found.begin(), found.end());
}

}  // namespace gradrack
