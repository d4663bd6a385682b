// SPDX-License-Identifier: Apache-2.0
// Runtimes that tolerate no second copy of their kind in a process: OpenMP, protobuf, CUDA.
//
// Beside plugin/probe: the probe process tells which runtimes a library brings, the host compares
// them with its own before it loads, and once more after. Invariant: two different files of one
// kind are never mapped without a word that names both. A runtime linked statically into a library
// has no file of its own and is not seen.
#pragma once

#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/base/status.hpp"

namespace gradrack {

/// A shared library that is mapped: its kind ("OpenMP", "protobuf", "protobuf-lite", "CUDA") and
/// its resolved path.
struct Runtime {
  std::string kind;
  std::string path;
};

/// `plugins.duplicate_runtimes`. kRefuse refuses a second OpenMP or protobuf runtime (wrong sums,
/// hangs, aborts that nobody can catch) and warns of a second CUDA runtime, which shares the
/// device's primary context with the first; kWarn warns of all.
enum class DuplicateRuntimes { kRefuse, kWarn };

/// Kind of runtime that a file of that name is, or "" for any other library.
std::string runtime_kind(const std::string& path);

/// Every file that the process has mapped as a library, the program included. [any]
std::vector<std::string> mapped_libraries();

/// Those of them that are runtimes. [any]
std::vector<Runtime> mapped_runtimes();

/// Compares what a library brings with what is there. A pair of one kind, of two files: refused by
/// GR_UNSUPPORTED, or an event "duplicate_runtime"; both paths and the library are named.
Status check_runtimes(const std::string& library, const std::vector<Runtime>& present,
                      const std::vector<Runtime>& brought, DuplicateRuntimes policy,
                      EventSink& events);

}  // namespace gradrack
