// SPDX-License-Identifier: Apache-2.0
// Claims: one batch query to a device about nodes of a bound graph.
//
// Used by lowering. Asks and reports; decides nothing.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "core/plan/bind.hpp"

namespace gradrack {

struct Claim {
  bool yes = false;
  int32_t group = -1;
  int64_t cost_ns = 0;
  std::string reason;  // of a no
  /// Of a yes that works in another dtype: "float16 computed in float32".
  std::string converted = {};
};

/// The device's verdict on each of `nodes` (live, no views). Errors: those of the backend.
Result<std::vector<Claim>> ask_claims(const Device& device, const BoundGraph& bound,
                                      const std::vector<size_t>& nodes);

}  // namespace gradrack
