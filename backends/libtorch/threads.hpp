// SPDX-License-Identifier: Apache-2.0
// Threads of ATen: how many a stream's kernels may use.
#pragma once

#include <memory>

#include "backends/common/stream.hpp"

namespace gradrack::libtorch {

/// Has ATen look at the processor, which its first kernel of a process would do, for tens of
/// milliseconds. [main]
void wake();

/// As many as ATen takes when nobody says: the cores that the process may run on, or
/// OMP_NUM_THREADS.
int default_threads();

/// A seat whose thread runs ATen's loops with `threads` threads. [plan]
std::unique_ptr<host::Seat> make_seat(int threads);

}  // namespace gradrack::libtorch
