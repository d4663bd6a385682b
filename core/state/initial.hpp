// SPDX-License-Identifier: Apache-2.0
// Initial values: what a parameter, buffer or state begins with.
//
// Used by the store. Invariant: a value depends on (seed, name, element) alone: not on order,
// thread, device or the other tensors.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.hpp"
#include "gradrack/graph.h"

namespace gradrack {

/// Writes `count` elements of `dtype` to `out`. Elements 2p and 2p + 1 come from one draw of
/// Philox4x32-10 with key = seed and counter = (p low, p high, FNV-1a(name) low, high), as two
/// 53-bit uniforms u, v in [0, 1): uniform a + (b - a) u, and v; normal by Box-Muller, a + b
/// sqrt(-2 ln(1 - u)) cos(2 pi v), and sin. Computed in double, then rounded. GR_INVALID_ARGUMENT
/// for an unknown kind; GR_UNSUPPORTED for a dtype without conversion.
Status write_initial(const std::string& name, gr_dtype_t dtype, const gr_init_t& init,
                     uint64_t seed, int64_t count, void* out);

}  // namespace gradrack
