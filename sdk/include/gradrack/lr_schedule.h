// SPDX-License-Identifier: Apache-2.0
// The lr_schedule kind: the learning rate as a pure function of the update index.
//
// Invariant: no state. The value logged is the value used, and a resumed run needs nothing
// restored.
#ifndef GRADRACK_LR_SCHEDULE_H_
#define GRADRACK_LR_SCHEDULE_H_

#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gr_lr_request {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t update;       ///< index of this update from 0; skipped updates do not advance it
  int64_t max_updates;  ///< horizon: the run's max_steps
  double base_lr;       ///< `lr` of the parameter group
} gr_lr_request_t;

typedef struct gr_lr_schedule {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// The rate for that update, finite and >= 0. [any]
  int32_t (*value)(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_lr_schedule_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_LR_SCHEDULE_H_
