// SPDX-License-Identifier: Apache-2.0
// Layout: where every storage of a plan lives, and what that costs.
//
// Last step of planning, after the schedule. Invariant: the report's total is what a Store of the
// graph's sources, the plan and one executor allocate together.
#pragma once

#include "core/plan/draft.hpp"

namespace gradrack {

/// Offsets of constants (copied into plan->constants), inputs, outputs and arenas; rewrites the
/// accesses to byte ranges; fills the memory report. GR_OUT_OF_MEMORY for the constants.
Status lay_out(Draft* draft);

}  // namespace gradrack
