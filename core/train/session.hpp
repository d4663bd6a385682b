// SPDX-License-Identifier: Apache-2.0
// A session: the checked run file, the plugins in reach and the event sink, for one command.
//
// core/cli opens it from its arguments; the commands of commands.hpp take it. Invariant: a session
// that was opened has a config in which every host key is right; plugins load on the first
// question.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/config/run_config.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// What every command with a run file takes from its arguments.
struct SessionRequest {
  std::string config_path;
  std::vector<std::string> sets;         ///< --set, in order
  std::vector<std::string> plugin_path;  ///< --plugin-path, in order
  bool allow_writable_plugins = false;   ///< --allow-writable-plugins
  bool ignore_lock = false;              ///< for the command that writes a new one
};

struct Session {
  RunConfig config;
  EventSink events;
  std::unique_ptr<PluginRegistry> plugins;
};

/// Loads and checks the run file and emits a "default" event for each section left out. Events go
/// to the log and to `recorder` where given. [main]
Result<std::unique_ptr<Session>> open_session(const SessionRequest& request,
                                              EventSink::Listener recorder = nullptr);

/// plugins.lock of that run: the one it names, else the one beside its file; empty: neither.
std::string lock_path_of(const RunConfig& config);

/// Checks all that can be checked without making anything: every section's plugin is there and
/// works on this machine, its options and the groups' overrides are right. What `validate` does.
/// The plugins that would be used come back, in the order of a run file.
Result<std::vector<Selection>> validate_session(Session& session);

}  // namespace gradrack
