// SPDX-License-Identifier: Apache-2.0
// MachinePeaks: what a device does at best, measured through its backend: the roof over its
// kernels.
#pragma once

#include <vector>

#include "core/device/device.hpp"

namespace gradrack {

/// Of one stream. Per ns: thousands of millions a second.
struct MachinePeaks {
  double flops = 0;  ///< in a float32 product of 1,024 x 1,024 matrices
  double bytes = 0;  ///< in a negation of 64 MiB, read and written
};

/// The best of a few runs each. Errors: those of plans and executors; GR_UNSUPPORTED: a backend of
/// the chain has no gr.timing/1. [plan]
Result<MachinePeaks> measure_peaks(const std::vector<Device*>& devices);

}  // namespace gradrack
