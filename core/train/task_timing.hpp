// SPDX-License-Identifier: Apache-2.0
// How long the tasks of a plan take, and a whole run: medians of a few runs.
//
// Whoever orders tasks by measured times (programs_timing.cpp) calls this before the first step,
// with the executor's inputs and scalars set. Every run changes what the store holds.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/executor.hpp"

namespace gradrack {

/// Of each task of the plan. Errors: those of Executor::run_timed; GR_UNSUPPORTED: the backend that
/// cannot is named, and nothing was run. [exec]
Result<std::vector<int64_t>> time_tasks(Executor& executor);

/// Of Executor::run(). [exec]
Result<int64_t> time_run(Executor& executor);

}  // namespace gradrack
