// SPDX-License-Identifier: Apache-2.0
// Commands that write and check the files beside plugins: manifests and plugins.lock.
//
// Called by app.cpp. Results go to stdout. Invariant: a file is written whole or not at all.
#pragma once

#include <string>

#include "core/base/status.hpp"
#include "core/config/run_config.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// Examines the library at `path` and writes its manifest: to `output`, or beside it. [main]
Status write_manifest(const std::string& path, const std::string& output, PluginRegistry& registry);

/// Locks the plugins that `config` names (every entry of its chains that is in reach), or all in
/// reach without one. GR_FAILED_PRECONDITION: two have one file name.
Status write_lock(PluginRegistry& registry, const RunConfig* config, const std::string& file);

/// Compares every line of the registry's lock with the folders searched and prints one line each;
/// GR_FAILED_PRECONDITION (exit 3) unless all match.
Status verify_lock(PluginRegistry& registry);

}  // namespace gradrack
