// SPDX-License-Identifier: Apache-2.0
// Patterns over toy operators: each match runs as one kernel that goes through its nodes one by
// one, so that its results have the bits of the nodes alone.
#pragma once

#include <string>

#include "backends/common/group.hpp"

namespace gradrack::toy {

/// A pattern for BackendOptions::groups. `claim` null: every match.
host::GroupEntry pattern(const std::string& name, const std::string& expression, uint32_t flags = 0,
                         std::function<std::string(const host::GroupSpec&)> claim = nullptr);

}  // namespace gradrack::toy
