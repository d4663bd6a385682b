// SPDX-License-Identifier: Apache-2.0
// What the entries of reductions share: their axes, shapes, and how rules read a node.
//
// Axes are an input that is known while building (opset 18). Without axes everything is reduced, or
// nothing when noop_with_empty_axes is 1.
#pragma once

#include <vector>

#include "core/graph/ops/rules.hpp"

namespace gradrack {

/// The axes to reduce from what the node was given, ascending.
Result<std::vector<int64_t>> reduced_axes(std::vector<int64_t> axes, bool keep_empty, size_t rank);
Shape reduced_shape(const Shape& from, const std::vector<int64_t>& axes, bool keepdims);

/// An entry "data, axes? -> reduced" with its attributes and shape rule.
OpDef reduction(std::string name, Dtypes set, std::string doc, void (*grad)(GradContext&));

/// What gradient rules and decompositions ask of a reduction node.
struct Reduction {
  ValueId x = GR_NO_VALUE;
  std::vector<int64_t> axes;
  bool keepdims = true;
};

template <typename Context>
Reduction reduction_of(Context& context) {
  Emitter& e = context.e();
  const bool given = context.input_count() > 1;
  const auto axes =
      reduced_axes(given ? numbers_of(e, context.input(1)) : std::vector<int64_t>(),
                   context.attrs().get_int("noop_with_empty_axes") != 0, e.rank(context.input(0)));
  if (!axes.ok()) e.fail(axes.status());
  return {context.input(0), axes.ok() ? *axes : std::vector<int64_t>(),
          context.attrs().get_int("keepdims") != 0};
}

/// y with the reduced dims as 1, whether or not the node kept them.
ValueId with_dims(Emitter& e, const Reduction& r, ValueId y);
/// x with its order turned round and nothing lost: -x, for integers -1 - x (255 - x), for bools
/// not x.
ValueId mirrored(Emitter& e, ValueId x);

}  // namespace gradrack
