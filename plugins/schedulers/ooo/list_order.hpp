// SPDX-License-Identifier: Apache-2.0
// List scheduling: whenever a lane is free, the first ready task of a list takes it.
//
// Graham, "Bounds on multiprocessing timing anomalies" (1969), with a price for waiting on another
// lane and a cap on bytes in the lane's view: a task that would exceed it stands back for one that
// does not, and goes when nothing else can move, where it adds least. So the cap is a wish; what
// came of it says peak_bytes().
#pragma once

#include "plan.hpp"

namespace ooo {

/// `precedence`: of each task, its place in the list. Uses the first `streams` streams.
Plan list_order(const TaskGraph& graph, const std::vector<uint32_t>& precedence, uint32_t streams,
                int64_t cap);

}  // namespace ooo
