// SPDX-License-Identifier: Apache-2.0
// add_widened: a table's operators on bfloat16, by the kernels that it has for a wider dtype.
//
// Inputs are widened into the workspace, the kernel runs, its results are rounded to nearest even:
// once, since bfloat16 widens exactly. A family with a kernel of its own for bfloat16 adds it
// before, and that one wins. Invariant: kernels see no bfloat16 at all.
#pragma once

#include <functional>

#include "backends/common/kernel.hpp"

namespace gradrack::host {

/// How numbers go from bfloat16 to the wider dtype and back: `count` elements.
struct Widening {
  gr_dtype_t wide = GR_FLOAT32;
  std::function<void(const uint16_t* from, void* to, int64_t count)> widen;
  std::function<void(const void* from, uint16_t* to, int64_t count)> narrow;
  /// Set where float32 beside bfloat16 must become `wide` too: kernels want one dtype.
  std::function<void(const float* from, void* to, int64_t count)> widen_float;
  std::function<void(const void* from, float* to, int64_t count)> narrow_float;
};

/// Adds an entry to every operator that the table has so far, for nodes with bfloat16.
void add_widened(KernelTable& table, const Widening& widening);

}  // namespace gradrack::host
