// SPDX-License-Identifier: Apache-2.0
// gr.update_rounding/1, an extension of precision policies: how an update reaches what is kept.
//
// For policies whose storage dtype is too coarse to hold a step. Optimizers then see parameters,
// gradients and state in `compute_dtype`, and what they give is rounded to the storage dtype once.
// `policy->get_extension(policy->self, GR_EXT_UPDATE_ROUNDING)` gives the struct or NULL; it is
// valid as long as the policy. Invariant: it never changes.
#ifndef GRADRACK_UPDATE_ROUNDING_H_
#define GRADRACK_UPDATE_ROUNDING_H_

#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_UPDATE_ROUNDING "gr.update_rounding/1"

enum {
  GR_ROUND_NEAREST = 0,
  /// Up or down, each as likely as the number is near it: right on average, by the run's own
  /// counter-based randomness.
  GR_ROUND_STOCHASTIC = 1
};

typedef struct gr_update_rounding {
  uint32_t struct_size;
  int32_t rounding;          ///< GR_ROUND_*
  gr_dtype_t compute_dtype;  ///< in which optimizers compute; wider than the storage dtype
  uint32_t reserved;
} gr_update_rounding_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_UPDATE_ROUNDING_H_
