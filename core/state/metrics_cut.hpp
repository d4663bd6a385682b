// SPDX-License-Identifier: Apache-2.0
// Metrics of steps that are run again: cut off, so that a file has each step once.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// Cuts the metrics file `path` before the first line about a step past `step`. What is cut, a last
/// line without its end included, goes to "metrics.N.jsonl" beside it, whose path is returned;
/// empty where nothing was cut, or there is no such file. GR_IO: with path and reason. [main]
Result<std::string> cut_metrics(const std::string& path, int64_t step);

}  // namespace gradrack
