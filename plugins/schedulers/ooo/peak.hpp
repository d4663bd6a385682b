// SPDX-License-Identifier: Apache-2.0
// Peak: the most bytes that a plan may hold at once, whatever the timing.
//
// Two buffers may be live at once unless all users of one have surely ended before the other is
// made: by the order of a lane, or by dependencies. An arena keeps all those apart, so it cannot be
// smaller than any set of buffers in which each two may be live at once. Of such a set take the
// task that makes the last one: the set is in the view of its lane then. What is shared with
// another lane, or that lane's alone, is besides in the view of one place of that lane (intervals
// that meet in pairs have a place in common). So the largest sum over pairs of a task and a place
// of each other lane is the answer: exact for one and two lanes, never too small for more.
#pragma once

#include "plan.hpp"

namespace ooo {

int64_t peak_bytes(const TaskGraph& graph, const Plan& plan);

}  // namespace ooo
