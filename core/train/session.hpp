// SPDX-License-Identifier: Apache-2.0
// Session: what every command of the program starts from: the checked config, the plugins that were
// found, and where events go.
#pragma once

#include "core/base/events.hpp"
#include "core/config/run_config.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

struct Session {
  RunConfig config;
  PluginRegistry& registry;
  EventSink& events;
  bool quiet = false;  ///< no progress line
};

}  // namespace gradrack
