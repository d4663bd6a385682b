// SPDX-License-Identifier: Apache-2.0
// Timelines of a plan: its streams as rows, its tasks as spans.
//
// Beside plan.hpp, for explain and for traces of measured steps. Invariant: rows stand in the order
// of devices and streams, whatever the order in which the schedule came to use them.
#pragma once

#include "core/plan/plan.hpp"
#include "core/schedule/timeline.hpp"

namespace gradrack {

/// "cpu", "cpu.1": the stream behind a lane of the plan's schedule.
std::string lane_name(const Plan& plan, uint32_t lane);

/// Name, kind and stage of a task; no times.
TimelineSpan span_of(const Plan& plan, uint32_t task);

/// When each task would run by the costs in the plan's table (schedule/predict.hpp).
Timeline predicted_timeline(const Plan& plan);

/// The same for people: makespan beside program order's, lines of `columns` characters of time,
/// what the letters mean, and how long each stream would stand idle.
std::string prediction_text(const Plan& plan, size_t columns);

}  // namespace gradrack
