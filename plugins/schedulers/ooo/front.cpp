// SPDX-License-Identifier: Apache-2.0
// Keeping what is not beaten: see front.hpp.
#include "front.hpp"

#include <algorithm>

namespace ooo {

Candidate Front::weigh(Plan plan) const {
  Candidate made = {std::move(plan), 0, 0};
  made.makespan_ns = makespan_ns(graph_, made.plan);
  made.peak_bytes = ooo::peak_bytes(graph_, made.plan);
  return made;
}

void Front::offer(Candidate made, bool renew) {
  const int64_t makespan = made.makespan_ns, peak = made.peak_bytes;
  // The first that is not faster; the one before it holds least of all that are.
  const auto at =
      std::lower_bound(candidates_.begin(), candidates_.end(), makespan,
                       [](const Candidate& each, int64_t time) { return each.makespan_ns < time; });
  if (at != candidates_.begin() && std::prev(at)->peak_bytes <= peak) return;
  if (at != candidates_.end() && at->makespan_ns == makespan) {
    if (at->peak_bytes < peak || (at->peak_bytes == peak && !renew)) return;
  }
  const auto beaten = std::find_if(at, candidates_.end(),
                                   [&](const Candidate& each) { return each.peak_bytes < peak; });
  candidates_.insert(candidates_.erase(at, beaten), std::move(made));
}

void Front::favour(Plan plan) {
  favourite_ = weigh(std::move(plan));
  offer(*favourite_);
}

const Candidate* Front::best(int64_t limit) const {
  const auto at = std::find_if(candidates_.begin(), candidates_.end(),
                               [&](const Candidate& each) { return each.peak_bytes <= limit; });
  if (at == candidates_.end()) return nullptr;
  const bool same = favourite_ && favourite_->peak_bytes <= limit;
  return same && favourite_->makespan_ns <= at->makespan_ns ? &*favourite_ : &*at;
}

}  // namespace ooo
