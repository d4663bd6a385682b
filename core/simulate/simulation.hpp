// SPDX-License-Identifier: Apache-2.0
// Simulation: when each task of a table runs under a schedule, and what that comes to.
//
// Discrete events over whole nanoseconds. A stream runs its tasks in the order of the schedule,
// each as soon as its predecessor and its dependencies have ended; a link takes transfers by its
// policy. Memory is taken when a task starts, and given back when it ends or when the last reader
// of its output has ended. Invariant: equal table and schedule, equal answer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.hpp"
#include "core/schedule/schedule.hpp"
#include "core/simulate/sim_table.hpp"

namespace gradrack {

struct StreamUse {
  uint32_t stream = 0;
  int64_t busy_ns = 0;
  int64_t idle_ns = 0;  ///< of the makespan
};

struct DeviceUse {
  int64_t first_ns = 0;  ///< start of its first task
  int64_t last_ns = 0;   ///< end of its last
  int64_t busy_ns = 0;   ///< over its streams
  int64_t peak_bytes = 0;
  std::vector<StreamUse> streams;  ///< those of the schedule, by number
};

struct LinkUse {
  int64_t busy_ns = 0;
  int64_t transfers = 0;
  int64_t bytes = 0;
};

struct Simulation {
  std::vector<int64_t> start_ns;  ///< of each task
  std::vector<int64_t> end_ns;    ///< of each task; of a transfer: when it has arrived
  std::vector<DeviceUse> devices;
  std::vector<LinkUse> links;
  int64_t makespan_ns = 0;
  int64_t span_ns = 0;     ///< longest time from a device's first start to its last end
  double bubble_rate = 0;  ///< share of span_ns in which the devices' streams stand idle, mean
  int64_t bound_ns = 0;    ///< no order is faster: busiest device or link, longest path
};

/// GR_INVALID_ARGUMENT when streams wait for each other in a circle; schedules that passed the
/// host's check cannot.
Result<Simulation> simulate(const SimTable& table, const Schedule& schedule);

/// GR_FAILED_PRECONDITION naming the device whose peak is over its limit, both in bytes.
Status check_memory(const SimTable& table, const Simulation& simulation);

/// max(busiest device / streams, busiest link, longest path of dependencies).
int64_t lower_bound_ns(const SimTable& table);

}  // namespace gradrack
