// SPDX-License-Identifier: Apache-2.0
// A device with memory of its own, played in host memory: what tests use where there is no other.
//
// It runs the kernels of a host backend, but what allocate gives cannot be read through: addresses
// (GR_MEMORY_DEVICE) are shifted out of what a process can map, objects (GR_MEMORY_HANDLE) are
// such an address too. So a host that reads or writes a tensor by itself ends there and then, and
// one that hands a tensor of another memory to a kernel gets an error that says so.
#pragma once

#include <atomic>
#include <set>
#include <string>

#include "backends/common/host_backend.hpp"

namespace gradrack::emulated {

/// Fills `out` with a backend of that memory over the kernels of `table`. With GR_MEMORY_HOST it is
/// the host backend itself: the same claims and the same sums, for comparison.
int32_t make_backend(host::KernelTable table, host::HostBackendConfig config, int32_t memory,
                     gr_backend_t* out, gr_error_t* err) noexcept;

/// Calls by which the host waits, over all such backends of the process; the extension
/// kWaitsExtension of one that count_waits() was told of.
struct Waits {
  std::atomic<int64_t> streams = 0;  // stream_synchronize
  std::atomic<int64_t> events = 0;   // event_synchronize
};
inline constexpr const char* kWaitsExtension = "gradrack.test.waits/1";
void count_waits(gr_backend_t* table);

/// Those kernels of `table` whose operator is not in `refused`.
host::KernelTable without(host::KernelTable table, const std::set<std::string>& refused);

/// `table`, of whose kernels the `run`-th that runs fails, once.
host::KernelTable failing(host::KernelTable table, int64_t run);

/// About `percent` of `operators`, drawn by `seed`.
std::set<std::string> draw(const std::vector<std::string>& operators, int percent, uint64_t seed);

}  // namespace gradrack::emulated
