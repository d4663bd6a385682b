// SPDX-License-Identifier: Apache-2.0
// A precision policy that settles by the device, such as `auto`, gets its answer here.
//
// A part of the set-up: after the backends are chosen, before any graph is retyped.
#pragma once

#include <string>

#include "core/device/device.hpp"
#include "gradrack/precision_choice.h"

namespace gradrack {

/// How a device runs matrix products with operands of one dtype.
struct ProductSupport {
  int32_t how = GR_SUPPORT_NO;  ///< GR_SUPPORT_*
  std::string reason;           ///< the backend's words; "": of a native one
};

/// Asks by a claim on a small product. Errors: those of the backend. [plan]
Result<ProductSupport> product_support(const Device& device, gr_dtype_t dtype);

/// Lets `policy` settle by what `device` says; answers what it chose and why, or "" where it has
/// nothing to choose. Once. [plan]
Result<std::string> settle_precision(const gr_precision_t& policy, const Device& device);

}  // namespace gradrack
