// SPDX-License-Identifier: Apache-2.0
// add_widened: a table's operators on a 16-bit dtype, by the kernels that it has for a wider one.
//
// Inputs are widened into the workspace, the kernel runs, its results are rounded to nearest even:
// once, since both 16-bit dtypes widen exactly. A family with a kernel of its own for 16 bits adds
// it before, and that one wins. Invariant: kernels see none of the narrow dtype.
#pragma once

#include <functional>

#include "backends/common/kernel.hpp"

namespace gradrack::host {

/// How numbers go from the narrow dtype to the wider one and back: `count` elements.
struct Widening {
  gr_dtype_t narrow_dtype = GR_BFLOAT16;  ///< or GR_FLOAT16
  gr_dtype_t wide = GR_FLOAT32;
  std::function<void(const uint16_t* from, void* to, int64_t count)> widen;
  std::function<void(const void* from, uint16_t* to, int64_t count)> narrow;
  /// Set where float32 beside the narrow dtype must become `wide` too: kernels want one dtype.
  std::function<void(const float* from, void* to, int64_t count)> widen_float;
  std::function<void(const void* from, float* to, int64_t count)> narrow_float;
};

/// Adds an entry to every operator that the table has so far, for nodes with the narrow dtype;
/// of two dtypes the second comes after the first.
void add_widened(KernelTable& table, const Widening& widening);

}  // namespace gradrack::host
