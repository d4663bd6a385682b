// SPDX-License-Identifier: Apache-2.0
// WrappedDirection: an optimizer's direction after all its wrappers (gr.direction/1, gr.wrapper/1).
//
// Used by update.cpp alone. Invariant: each wrapper has changed what it is for exactly once, or the
// request failed.
#pragma once

#include "core/graph/builder_api.hpp"
#include "core/optim/step_graph.hpp"
#include "gradrack/direction.h"

namespace gradrack {

class WrappedDirection {
 public:
  WrappedDirection(Graph& graph, const GroupUpdate& group);

  /// Appends the nodes and sets update->new_states. GR_INVALID_ARGUMENT: the optimizer offers no
  /// direction, or never shows its momentum to a wrapper that is for it. [plan]
  Status ask(gr_update_t* update);
  ValueId direction() const { return direction_; }
  double weight_decay() const { return weight_decay_; }

 private:
  static int32_t change_momentum(void* self, gr_value_t* value, gr_error_t* err) noexcept;
  // Applies the wrappers for `place`.
  Status apply(int32_t place, ValueId* value);

  BuilderApi api_;
  gr_builder_t builder_;
  const GroupUpdate& group_;
  const gr_update_t* update_ = nullptr;
  int momentum_seen_ = 0;
  ValueId direction_ = GR_NO_VALUE;
  double weight_decay_ = 0;
};

}  // namespace gradrack
