// SPDX-License-Identifier: Apache-2.0
// Work: the arithmetic and the traffic that a node cannot do without, from its shapes.
//
// For estimates of cost where a backend gives none, and for rooflines. Invariant: it counts the
// mathematics, not a kernel: a product of [M, K] by [K, N] is 2 M N K operations however it is
// made.
#pragma once

#include <cstdint>

#include "core/plan/bind.hpp"

namespace gradrack {

struct Work {
  int64_t flops = 0;  ///< additions, multiplications and the like; a function of a number is one
  int64_t bytes = 0;  ///< each input read once, each output written once
};

/// Of a node whose values are bound. What is known of products, convolutions and attention is
/// counted exactly; any other node has one operation an element of its largest value.
Work work_of(const Node& node, const BoundGraph& bound);

}  // namespace gradrack
