// SPDX-License-Identifier: Apache-2.0
// LossScale: see loss_scale.hpp.
#include "core/precision/loss_scale.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gradrack {

namespace {

// Of one that is no scale, what is wrong; else "".
std::string fault_of(const gr_loss_scale_state_t& state) {
  if (std::isfinite(state.scale) && state.scale > 0 && state.clean_steps >= 0 &&
      state.skipped_steps >= 0) {
    return "";
  }
  return fmt::format(
      "the loss scale is {}, {} clean and {} skipped steps: wanted a finite number "
      "above 0, and counts of 0 or more",
      state.scale, state.clean_steps, state.skipped_steps);
}

}  // namespace

Result<LossScale> LossScale::make(const gr_loss_scale_t& table) {
  LossScale scale(table);
  gr_error_t err = {};
  GR_TRY(status_from(table.begin(table.self, &scale.state_, &err), err)
             .with_context("precision plugin"));
  const std::string fault = fault_of(scale.state_);
  if (!fault.empty()) return internal_error("precision plugin: " + fault).in_area(Area::kPlugin);
  return scale;
}

Status LossScale::restore(const gr_loss_scale_state_t& state) {
  const std::string fault = fault_of(state);
  if (!fault.empty()) return invalid_argument(fault);
  state_ = state;
  return {};
}

Status LossScale::observe(bool finite) {
  gr_loss_scale_state_t next = state_;
  gr_error_t err = {};
  const int32_t code = table_->next(table_->self, &state_, finite ? 1 : 0, &next, &err);
  if (code != GR_OK && code != GR_NONFINITE) {
    return status_from(code, err).with_context("precision plugin");
  }
  const std::string fault = fault_of(next);
  if (!fault.empty()) return internal_error("precision plugin: " + fault).in_area(Area::kPlugin);
  state_ = next;
  return status_from(code, err);
}

}  // namespace gradrack
