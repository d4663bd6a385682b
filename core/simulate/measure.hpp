// SPDX-License-Identifier: Apache-2.0
// Private to simulate/: busy and idle time, spans and bubble rate out of starts and ends.
#pragma once

#include "core/simulate/simulation.hpp"

namespace gradrack {

/// Fills every member of `out` that follows from start_ns and end_ns.
void measure(const SimTable& table, const Schedule& schedule, Simulation* out);

}  // namespace gradrack
