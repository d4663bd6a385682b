// SPDX-License-Identifier: Apache-2.0
// make_host_backend: a table of kernels becomes a gr_backend_t for host memory.
//
// Called by a backend plugin's create(); everything between the C interface and Kernel::run lives
// here: claims with reasons, prepare, launch, memory, copies, streams and events. Invariant: no
// exception leaves, and a launch allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/common/kernel.hpp"
#include "backends/common/stream.hpp"

namespace gradrack::host {

struct HostBackendConfig {
  std::string description;        // one line: device, instruction set, threads
  bool threaded = false;          // streams with a thread each; otherwise work runs inside the call
  uint32_t max_streams = 1;       // told to the host
  std::shared_ptr<void> context;  // kept alive as long as the backend (a thread pool)
  /// (optional) Called for each threaded stream that is made. [plan]
  std::function<std::unique_ptr<Seat>()> seat;
};

/// Alignment of every allocation and workspace, in bytes.
inline constexpr int64_t kAlignment = 64;

/// Fills as much of `out` as its struct_size says the host knows. The table and config move in;
/// destroy() frees them.
int32_t make_host_backend(KernelTable table, HostBackendConfig config, gr_backend_t* out,
                          gr_error_t* err) noexcept;

}  // namespace gradrack::host
