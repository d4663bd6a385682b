// SPDX-License-Identifier: Apache-2.0
// gr.direction/1 and gr.wrapper/1: extensions of optimizers, so that one can be wrapped by another.
//
// An optimizer whose update is  p' = p (1 - lr weight_decay) - lr direction  offers
// `optimizer->get_extension(optimizer->self, GR_EXT_DIRECTION)`; one that changes the direction of
// any other offers GR_EXT_WRAPPER. A run that names both asks for the direction, lets the wrapper
// change it, and takes the step itself. Tables are valid as long as the optimizer. Invariant:
// weight decay is no part of a direction, so that no wrapper ever sees it.
#ifndef GRADRACK_DIRECTION_H_
#define GRADRACK_DIRECTION_H_

#include "gradrack/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_DIRECTION "gr.direction/1"
#define GR_EXT_WRAPPER "gr.wrapper/1"

/// What the host does to a value on its way through an optimizer.
typedef struct gr_value_change {
  uint32_t struct_size;
  uint32_t reserved;
  void* self;
  /// Appends nodes and replaces `*value` by one of its dtype and shape. [plan]
  int32_t (*apply)(void* self, gr_value_t* value, gr_error_t* err);
} gr_value_change_t;

typedef struct gr_direction {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// As gr_optimizer.build_update, but leaves `update->new_parameter` alone and gives `direction`
  /// (dtype and shape of the parameter) and `weight_decay`. The momentum that the direction is made
  /// of passes through `momentum` before anything else is done to it; what is kept as state does
  /// not. GR_UNSUPPORTED: not with these options. [plan]
  int32_t (*build_direction)(void* self, const gr_builder_t* builder, gr_update_t* update,
                             const gr_value_change_t* momentum, gr_value_t* direction,
                             double* weight_decay, gr_error_t* err);
} gr_direction_t;

/// What a wrapper changes.
enum {
  GR_WRAP_DIRECTION = 0,  ///< the finished direction
  GR_WRAP_MOMENTUM = 1    ///< the momentum that the direction is made of
};

typedef struct gr_wrapper {
  uint32_t struct_size;
  int32_t place;  ///< GR_WRAP_*
  void* self;
  /// Appends nodes and replaces `*value` (dtype and shape of the parameter), which is the direction
  /// or the momentum. Of `update` the members before new_parameter are set. [plan]
  int32_t (*wrap)(void* self, const gr_builder_t* builder, const gr_update_t* update,
                  gr_value_t* value, gr_error_t* err);
} gr_wrapper_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_DIRECTION_H_
