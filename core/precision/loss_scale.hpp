// SPDX-License-Identifier: Apache-2.0
// LossScale: the loss scale of a run, by what its precision policy says of it.
//
// Used by the training loop: value() before a step, observe() after it. Invariant: state() is all
// that it remembers, so a run that goes on from a saved state goes on exactly. It puts the scale
// into no graph: that is the step graph's part (optim/step_graph.hpp).
#pragma once

#include <optional>

#include "core/base/status.hpp"
#include "gradrack/loss_scale.h"

namespace gradrack {

class LossScale {
 public:
  /// `table` outlives this. GR_INTERNAL: the policy begins with a scale that is none. [plan]
  static Result<LossScale> make(const gr_loss_scale_t& table);

  double value() const { return state_.scale; }
  const gr_loss_scale_state_t& state() const { return state_; }
  /// Goes on from `state`. GR_INVALID_ARGUMENT: it is none that could have been saved. [main]
  Status restore(const gr_loss_scale_state_t& state);

  /// Takes in whether a step's gradients were finite. GR_NONFINITE: too many in a row were not;
  /// state() is the one after the step all the same. [exec]
  Status observe(bool finite);

 private:
  explicit LossScale(const gr_loss_scale_t& table) : table_(&table) {}
  const gr_loss_scale_t* table_;
  gr_loss_scale_state_t state_ = {};
};

}  // namespace gradrack
