// SPDX-License-Identifier: Apache-2.0
// Beam search over schedules of small graphs, under a cap.
//
// Tasks are placed in the order in which they start, on any lane; of each length the `width`
// beginnings with the best lower bounds are gone on with. Bytes are counted exactly: sets of
// buffers of which each two may be live at once (peak.hpp). Wide enough it is exhaustive.
#pragma once

#include <optional>

#include "plan.hpp"

namespace ooo {

/// Few enough tasks and buffers, and the buffers are told.
bool fits_beam(const TaskGraph& graph);

struct BeamGoal {
  uint32_t streams = 1;         // the first of the graph's
  int64_t cap = kNoLimit;       // bytes
  int64_t below_ns = kNoLimit;  // only what is faster
  bool least_bytes = false;     // on one stream: not the fastest, what holds least
};

struct BeamAnswer {
  std::optional<Plan> plan;  // none: nothing was found
  bool all = true;           // no beginning was passed over that might have led to a better one
};

/// `nodes` is lowered by the number of beginnings looked at.
BeamAnswer beam_order(const TaskGraph& graph, const BeamGoal& goal, size_t width, int64_t* nodes);

}  // namespace ooo
