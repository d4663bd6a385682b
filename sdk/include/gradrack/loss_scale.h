// SPDX-License-Identifier: Apache-2.0
// gr.loss_scale/1, an extension of precision policies: what the loss is multiplied by.
//
// For policies whose gradients would fall below the smallest number of their dtype. The host starts
// each backward pass from `scale`, takes it out again once a step, after accumulation and before
// clipping, and calls `next` with the outcome; a step that was not finite changes nothing else.
// `policy->get_extension(policy->self, GR_EXT_LOSS_SCALE)` gives the table or NULL; it is valid as
// long as the policy. Invariant: `next` is a pure function, and all that it remembers is the state
// that it is given, so that a checkpoint which holds the state holds everything.
#ifndef GRADRACK_LOSS_SCALE_H_
#define GRADRACK_LOSS_SCALE_H_

#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_LOSS_SCALE "gr.loss_scale/1"

/// What a scale remembers from step to step. Frozen: never grows.
typedef struct gr_loss_scale_state {
  double scale;           ///< finite, > 0; for exact gradients a power of two
  int64_t clean_steps;    ///< finite steps in a row since the scale last changed
  int64_t skipped_steps;  ///< steps in a row that were not finite
} gr_loss_scale_state_t;

typedef struct gr_loss_scale {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// The state before the first step. [plan]
  int32_t (*begin)(void* self, gr_loss_scale_state_t* out, gr_error_t* err);
  /// The state after a step: `finite` is 1 where its gradients were finite, else 0. GR_NONFINITE:
  /// too many in a row were not; `out` is set all the same, and the run ends. [exec]
  int32_t (*next)(void* self, const gr_loss_scale_state_t* state, int32_t finite,
                  gr_loss_scale_state_t* out, gr_error_t* err);
} gr_loss_scale_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_LOSS_SCALE_H_
