// SPDX-License-Identifier: Apache-2.0
// A plugin's manifest: what a library offers, told without loading it.
//
// `NAME.plugin.yaml` beside NAME.so, or `plugin.yaml` in a folder of its own; written by
// gradrack_add_plugin and `gradrack plugins manifest`. The registry reads it while it scans, so
// that only the libraries that a run needs are loaded. Invariant: a manifest that was returned
// names a file of its own folder and nothing outside it. That the library keeps its promises is
// checked when it is loaded (library_meets).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.hpp"
#include "core/plugin/probe.hpp"

namespace gradrack {

struct Library;

struct Manifest {
  std::string file;  ///< its own path
  std::string id;
  std::string version;
  uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
  std::string library;  ///< a bare file name
  std::string sha256;   ///< of the library's bytes
  std::vector<Offer> kinds;
  std::string threading;           ///< "none", "own" or "openmp"
  std::vector<std::string> needs;  ///< words for people: "opencl", "avx512"

  /// The library's path: beside the manifest.
  std::string library_path() const;
};

/// Where the manifest of that library belongs: NAME.plugin.yaml beside NAME.so.
std::string manifest_path_of(const std::string& library_path);

/// The library that a manifest called NAME.plugin.yaml is about by its name, even when it cannot be
/// read; "" for one that is called plugin.yaml.
std::string library_path_of(const std::string& manifest_path);

/// Does a file of this name hold a manifest?
bool is_manifest_name(std::string_view name);

/// Reads one. GR_INVALID_ARGUMENT with file, line and column for: bad YAML, a missing, unknown or
/// wrongly typed key, an unknown kind, a repeated offer, a library with a folder in its name. Keys
/// and kinds that nobody knows are passed over when the library also speaks a newer ABI minor than
/// this host. Area::kPlugin. [any]
Result<Manifest> parse_manifest(std::string_view text, const std::string& file);

/// YAML that parse_manifest reads back to the same manifest.
std::string manifest_text(const Manifest& manifest);

/// A loaded library against its manifest: the id, and every offer. GR_FAILED_PRECONDITION.
Status library_meets(const Library& library, const Manifest& manifest);

}  // namespace gradrack
