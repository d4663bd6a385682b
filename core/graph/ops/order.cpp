// SPDX-License-Identifier: Apache-2.0
// Operator entry that is about order alone: gradrack.After.
//
// What recomputation hangs its clones on: without it a clone needs nothing but what the forward
// pass kept, and a scheduler that looks for idle streams would run it at once. Invariant: no bits
// depend on it; it has no kernel and no bytes of its own.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

Status add_order_ops(OpRegistry& ops) {
  OpDef after = define_own("After", "X, first", "Y",
                           "Y = X, for readers that must not run before `first` is made.");
  after.view = true;
  after.infer = [](InferContext& c) -> Status {
    c.set_output(0, c.input(0));
    return {};
  };
  after.grad = [](GradContext& g) {
    if (g.needs(0)) g.set_grad(0, g.grad_output(0));
  };
  return ops.add(after);
}

}  // namespace gradrack
