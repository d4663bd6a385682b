// SPDX-License-Identifier: Apache-2.0
// The order of a draft's tasks, with the arenas that it needs: the scheduler's answer where it fits
// in memory.limit, program order elsewhere.
//
// Last step of planning. Invariants: the plan's arenas hold under its schedule, proven by
// check_happens_before; whenever the scheduler's answer was not taken, an event says why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/plan/draft.hpp"

namespace gradrack {

/// What a wait between two streams costs, ns. Measured by tests/bench/stream_costs on two cores in
/// host memory: 0.3 to 0.8 us where what it waits for ends while it still spins, 7 to 40 us where
/// it has gone to sleep. Assumed for devices of their own too.
inline constexpr int64_t kWaitNs = 5000;

/// What is known of the order before the scheduler is asked.
struct OrderWish {
  bool first = false;              // the plan is the first of its class
  const Plan* relative = nullptr;  // its order is taken where it fits the tasks
  std::optional<std::span<const int64_t>> cost_ns = {};  // measured, by task; none: estimates
  std::string program_order = {};  // why it is to be program order; "": it is not
};

/// Fills plan->schedule, the arenas and their part of the memory report, and settles the accesses.
/// After lay_out_fixed. Errors: those of the scheduler; GR_INTERNAL where the proof fails. [plan]
Status order_tasks(const OrderWish& wish, Draft* draft);

}  // namespace gradrack
