// SPDX-License-Identifier: Apache-2.0
// Commands that print what there is: plugins and operators. They need no run file.
#pragma once

#include <string>

#include "core/base/status.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// Every plugin found, and below them what was refused and why. Nothing is loaded, unless `load`:
/// then all is, and plugins that cannot work on this machine say so. [main]
Status list_plugins(PluginRegistry& registry, bool load);

/// One plugin ("adamw", "optimizer/adamw") or all of a library ("./mine.so") with its options.
Status inspect_plugin(PluginRegistry& registry, const std::string& name);

/// Every built-in operator with one column a backend in reach; as Markdown: the text of
/// docs/operators.md. A backend that cannot be made is an event, "backend_left_out".
Status list_operators(PluginRegistry& registry, EventSink& events, bool markdown);

}  // namespace gradrack
