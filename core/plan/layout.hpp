// SPDX-License-Identifier: Apache-2.0
// Layout: where every storage of a plan lives, and what that costs.
//
// In three parts, because memory.limit leaves for arenas what the rest does not take, and an order
// whose arenas are too large is put aside for another. Invariant: the report's total is what a
// Store of the graph's sources, the plan and one executor allocate together.
#pragma once

#include "core/plan/draft.hpp"

namespace gradrack {

/// All but the arenas: offsets of constants (copied into plan->constants), inputs and outputs, and
/// their part of the memory report. Needs no schedule. GR_OUT_OF_MEMORY for the constants.
Status lay_out_fixed(Draft* draft);
/// Offsets in the arenas under the plan's schedule, and their part of the report; again for
/// another.
void lay_out_arenas(Draft* draft);
/// Rewrites the accesses to byte ranges. Last.
void settle_accesses(Draft* draft);

}  // namespace gradrack
