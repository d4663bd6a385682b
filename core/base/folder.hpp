// SPDX-License-Identifier: Apache-2.0
// What lies in a folder, and where the program's own lie. Base of the flow; no state.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.hpp"

namespace gradrack {

/// The names in `folder`, sorted, without "." and "..". By the system's calls: the iterators of
/// std::filesystem end the program when there is no memory. Errors say the reason alone:
/// GR_NOT_FOUND, GR_IO, GR_OUT_OF_MEMORY. [any]
Result<std::vector<std::string>> names_in(const std::string& folder);

/// The same; none of a folder that is not there or cannot be read.
std::vector<std::string> names_in_or_none(const std::string& folder);

/// The folder that holds bin/, where this program lies: what is installed with it is found from
/// there. Empty where the system does not say. [any]
std::string install_prefix();

}  // namespace gradrack
