// SPDX-License-Identifier: Apache-2.0
// The optimizer kind: says as graph nodes how a parameter and its state change in one update.
//
// The host makes one instance per parameter group (options merged), clips gradients before, and
// commits the new values only when the step is good. Invariant: what varies by step is a scalar
// value in the graph, never a constant, so a plan is not rebuilt for it. A parameter without a
// gradient in a step is skipped by the host: no state change, no decay, not counted in `step`.
#ifndef GRADRACK_OPTIMIZER_H_
#define GRADRACK_OPTIMIZER_H_

#include "gradrack/graph.h"
#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GR_MAX_STATES = 8 };

typedef struct gr_parameter_info {
  uint32_t struct_size;
  gr_dtype_t dtype;
  const char* name;
  const char* stage;  ///< dotted; "" outside any stage
  const int64_t* dims;
  uint32_t rank;
  int32_t role;  ///< GR_ROLE_*
} gr_parameter_info_t;

/// A tensor that lives beside a parameter, such as "exp_avg". Saved as "NAME.STATE". Frozen.
typedef struct gr_state {
  const char* name;  ///< static text, or of the instance
  gr_dtype_t dtype;
  uint32_t rank;
  int64_t dims[GR_MAX_RANK];
  gr_init_t init;
} gr_state_t;

/// Of get_extension, as static text of the instance: the state that evaluation, samples and saved
/// weights read in place of the parameter, "x". Since 1.1. [any]
#define GR_EXT_EVALUATION_STATE "gr.evaluation_state/1"

/// Inputs and results of one parameter's update.
typedef struct gr_update {
  uint32_t struct_size;
  uint32_t state_count;
  const gr_parameter_info_t* info;
  gr_value_t parameter;
  gr_value_t gradient;                   ///< unscaled and clipped, dtype and shape of the parameter
  const gr_value_t* states;              ///< as declared
  gr_value_t lr;                         ///< float64 scalar: this update's learning rate
  gr_value_t step;                       ///< float64 scalar: which update of this parameter, from 1
  gr_value_t new_parameter;              ///< out; dtype and shape of the parameter
  gr_value_t new_states[GR_MAX_STATES];  ///< out; state_count of them
} gr_update_t;

typedef struct gr_optimizer {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// Writes up to GR_MAX_STATES declarations and their number; no side effect. [plan]
  int32_t (*declare_state)(void* self, const gr_parameter_info_t* info, gr_state_t* states,
                           uint32_t* count, gr_error_t* err);
  /// Appends nodes and sets the `new_` members. GR_UNSUPPORTED: not for a parameter like this.
  /// [plan]
  int32_t (*build_update)(void* self, const gr_builder_t* builder, gr_update_t* update,
                          gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_optimizer_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_OPTIMIZER_H_
