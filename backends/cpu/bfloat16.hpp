// SPDX-License-Identifier: Apache-2.0
// bfloat16 through the float32 loops: a block at a time is widened on the stack, worked on and
// rounded back, so that memory sees 16 bits a number.
//
// Used by the elementwise families. Invariant: a result does not depend on where blocks begin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "backends/common/kernel.hpp"
#include "backends/cpu/context.hpp"

namespace gradrack::cpu {

inline constexpr int64_t kBlock = 1024;

/// The float32 numbers of a block: of `n` elements, or of one that stands for all (step 0).
class WideBlock {
 public:
  /// Elements [at, at + n) of x, whose steps are `step`.
  const float* read(const Simd& loops, const uint16_t* x, int64_t step, int64_t at, int64_t n) {
    loops.from_bfloat16(x + at * step, numbers_, step == 0 ? 1 : n);
    return numbers_;
  }
  float* numbers() { return numbers_; }

 private:
  alignas(64) float numbers_[kBlock];
};

/// body(x, y, n) on float32 for each block of a bfloat16 array; y may be x.
template <class Body>
void in_blocks(const Simd& loops, const uint16_t* x, uint16_t* y, int64_t n, const Body& body) {
  WideBlock block;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = std::min(kBlock, n - at);
    const float* wide = block.read(loops, x, 1, at, size);
    body(wide, block.numbers(), size);
    loops.to_bfloat16(block.numbers(), y + at, size);
  }
}

/// Reason text unless all floating inputs and outputs are float32, or all are bfloat16.
std::string claim_loops(const host::NodeSpec& node);

/// Cast between float32 and 16 bits (bfloat16.cpp).
void add_bfloat16_kernels(host::KernelTable& table, const Context& context);
/// Everything else that the table has, on 16 bits by way of float32. Comes last.
void add_widened_kernels(host::KernelTable& table, const Context& context);

}  // namespace gradrack::cpu
