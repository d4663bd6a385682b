// SPDX-License-Identifier: Apache-2.0
// The timeline of a simulation: schedule/timeline.hpp draws it.
//
// Last step of simulate/. One row a stream of a device, then one a link. Invariant: every task of
// the table is in it once.
#pragma once

#include "core/schedule/timeline.hpp"
#include "core/simulate/simulation.hpp"

namespace gradrack {

/// Rows of streams and links that have tasks.
Timeline timeline_of(const SimTable& table, const Schedule& schedule, const Simulation& simulation);

}  // namespace gradrack
