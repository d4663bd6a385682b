// SPDX-License-Identifier: Apache-2.0
// `gradrack doctor`: machine, limits, folders and plugins in one look, with what may be in the way.
#pragma once

#include "core/base/status.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

/// Prints about thirty lines: facts, and "!" before what a user may want to change. Loads every
/// library in reach. GR_FAILED_PRECONDITION (exit 3): no backend works here, so nothing can be
/// trained. [main]
Status run_doctor(PluginRegistry& registry);

}  // namespace gradrack
