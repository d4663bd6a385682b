// SPDX-License-Identifier: Apache-2.0
// gr_host_t: what this host offers to a plugin library.
#pragma once

#include <string>

#include "gradrack/plugin.h"

namespace gradrack {

/// The range of ABI minors that this host speaks (major GR_ABI_MAJOR).
inline constexpr uint32_t kHostMinMinor = 0;
inline constexpr uint32_t kHostMaxMinor = GR_ABI_MAX_MINOR;

/// "1.0.0".
std::string host_version();

/// A table whose log lines are headed by `who`. Lives as long as the process. [main]
const gr_host_t* make_host_table(const std::string& who);

}  // namespace gradrack
