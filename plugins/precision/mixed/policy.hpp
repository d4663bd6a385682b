// SPDX-License-Identifier: Apache-2.0
// MixedPolicy: products in 16 bits, all that sums, normalises or decides in float32.
//
// What `bf16`, `fp16` and `auto` have in common: they differ in which 16 bits. Invariant: what this
// file does not name computes in float32, so an operator of a later minor is never narrowed by
// accident.
#pragma once

#include <span>

#include "gradrack/precision.hpp"

namespace gradrack::mixed {

class MixedPolicy {
 public:
  /// `narrow`: GR_BFLOAT16, GR_FLOAT16, or GR_FLOAT32 where nothing is narrowed.
  explicit MixedPolicy(gr_dtype_t narrow) : narrow_(narrow) {}

  gr_dtype_t narrow() const { return narrow_; }
  /// `inputs`: as in gr_precision_inputs_t; none for a host that does not say what comes in.
  gr_dtype_t node_dtype(const gr_precision_node_t& node, std::span<const gr_dtype_t> inputs) const;

 private:
  gr_dtype_t narrow_;
};

}  // namespace gradrack::mixed
