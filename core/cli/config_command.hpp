// SPDX-License-Identifier: Apache-2.0
// `gradrack config show` and `gradrack config schema`: run files for people and for editors.
//
// Results go to stdout. Invariant: what show prints is a run file that trains the same.
#pragma once

#include "core/base/status.hpp"
#include "core/plugin/registry.hpp"
#include "core/train/session.hpp"

namespace gradrack {

/// The run file with includes, anchors, variables and --set resolved; with `resolved` every default
/// too: of the host's keys, and of the options of each plugin that is in reach. [main]
Status show_config(Session& session, bool resolved);

/// The JSON schema of a run file: host keys, and the options of every plugin in reach. A library
/// that does not load is an event, "schema_left_out". [main]
Status print_schema(PluginRegistry& registry, EventSink& events);
/// The same as text.
std::string config_schema(PluginRegistry& registry, EventSink& events);

}  // namespace gradrack
