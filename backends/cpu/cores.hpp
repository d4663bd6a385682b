// SPDX-License-Identifier: Apache-2.0
// Which cores this process may use, in which order threads should take them, and staying on one.
//
// The order comes from hwloc (https://www.open-mpi.org/projects/hwloc): neighbours share caches and
// memory, and the second hardware thread of a core comes after the first ones of all cores. Only
// the numbers that the system gives cores (cpu0, cpu1, ...) are passed around.
#pragma once

#include <string>
#include <vector>

namespace gradrack::cpu {

/// How many threads fit the process: the cores of its affinity, cut by the control group's quota
/// and OMP_NUM_THREADS; at least 1.
int available_threads();

/// What OMP_NUM_THREADS asks for at the outermost level; 0: nothing that is a number of threads.
int openmp_threads(const char* text);
/// Cores of the process's affinity, by number; empty: the system does not say.
std::vector<int> allowed_cores();

struct CoreOrder {
  std::vector<int> cores;  // those allowed
  std::string problem;     // why there are none
};
/// `synthetic`: a machine in hwloc's words ("pack:2 core:2 pu:2") instead of this one.
CoreOrder core_order(const std::vector<int>& allowed, const char* synthetic = nullptr);

/// Why the calling thread may not choose its cores; "" when it may.
std::string pinning_problem();
/// Keeps the calling thread on `core`. A refusal leaves it where it is: that costs time alone.
void stay_on(int core);

}  // namespace gradrack::cpu
