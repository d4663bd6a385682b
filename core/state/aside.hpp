// SPDX-License-Identifier: Apache-2.0
// Moving aside: what is in the way of a run keeps its content under a numbered name.
#pragma once

#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// "metrics.3.jsonl" for "metrics.jsonl", "checkpoints.1" for "checkpoints": the first that is
/// free.
std::string first_free(const std::string& path);

/// Renames `path` to first_free(path), which is returned. GR_IO.
Result<std::string> move_aside(const std::string& path);

}  // namespace gradrack
