// SPDX-License-Identifier: Apache-2.0
// What a precision policy may offer beyond its dtypes.
//
// Tables are valid as long as the policy; nullptr: it does not offer one. A policy that settles by
// the device (gr_precision_choice_t) does so before it is asked for the others. [plan]
#pragma once

#include "gradrack/loss_scale.h"
#include "gradrack/precision.h"
#include "gradrack/precision_choice.h"
#include "gradrack/precision_inputs.h"
#include "gradrack/update_rounding.h"

namespace gradrack {

/// `Table`: the struct that extension `id` gives.
template <typename Table>
const Table* extension_of(const gr_precision_t& policy, const char* id) {
  if (policy.get_extension == nullptr) return nullptr;
  return static_cast<const Table*>(policy.get_extension(policy.self, id));
}

inline const gr_loss_scale_t* loss_scale_of(const gr_precision_t& policy) {
  return extension_of<gr_loss_scale_t>(policy, GR_EXT_LOSS_SCALE);
}
inline const gr_precision_choice_t* precision_choice_of(const gr_precision_t& policy) {
  return extension_of<gr_precision_choice_t>(policy, GR_EXT_PRECISION_CHOICE);
}
inline const gr_precision_inputs_t* precision_inputs_of(const gr_precision_t& policy) {
  return extension_of<gr_precision_inputs_t>(policy, GR_EXT_PRECISION_INPUTS);
}
inline const gr_update_rounding_t* update_rounding_of(const gr_precision_t& policy) {
  return extension_of<gr_update_rounding_t>(policy, GR_EXT_UPDATE_ROUNDING);
}

}  // namespace gradrack
