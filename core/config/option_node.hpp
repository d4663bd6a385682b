// SPDX-License-Identifier: Apache-2.0
// Checked options as YAML again, defaults included, for `config show --resolved`.
#pragma once

#include <vector>

#include "core/config/options.hpp"

namespace gradrack {

/// One entry an option, in declared order, that check_options reads back to the same value. A path
/// that is not given is left out: there is no way to write one.
std::vector<YamlEntry> option_entries(const OptionValues& values, const OptionTable& table);

}  // namespace gradrack
