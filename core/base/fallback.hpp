// SPDX-License-Identifier: Apache-2.0
// Fallback: what to do when the next entry of a chain has to serve.
#pragma once

namespace gradrack {

/// Take it and say so as information; take it and warn; refuse it.
enum class Fallback { kAllow, kWarn, kStrict };

}  // namespace gradrack
