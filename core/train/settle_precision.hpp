// SPDX-License-Identifier: Apache-2.0
// A precision policy that settles by the device, such as `auto`, gets its answer here.
//
// A part of the set-up: after the backends are chosen, before any graph is retyped.
#pragma once

#include <string>

#include "core/device/device.hpp"
#include "gradrack/precision_choice.h"

namespace gradrack {

/// Lets `policy` settle by what `device` says; answers what it chose and why, or "" where it has
/// nothing to choose. Once. [plan]
Result<std::string> settle_precision(const gr_precision_t& policy, const Device& device);

}  // namespace gradrack
