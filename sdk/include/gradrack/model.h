// SPDX-License-Identifier: Apache-2.0
// The model kind: builds the forward graph, its objectives and outputs. It runs nothing.
//
// The host calls `build` for each mode it needs (training, evaluation) with the same options.
// Invariant: both graphs declare the same parameters, buffers and objectives, in the same order.
#ifndef GRADRACK_MODEL_H_
#define GRADRACK_MODEL_H_

#include "gradrack/data.h"
#include "gradrack/graph.h"
#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gr_model_context {
  uint32_t struct_size;
  int32_t training;            ///< 1: dropout and batch statistics are on
  const gr_data_info_t* data;  ///< what the data plugin offers; NULL when there is none (tools)
  /// 1: the graph is written to a file. It may compute from parameters alone what a weight is in
  /// the end (an adapter added to it): the host computes that once. Since 1.1. Evaluation form.
  int32_t exporting;
  int32_t reserved;
} gr_model_context_t;

typedef struct gr_model {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// Appends inputs, parameters, nodes, objectives and outputs. GR_INVALID_ARGUMENT: options that
  /// do not fit each other or the data, with the option's name in `field`. [plan]
  int32_t (*build)(void* self, const gr_builder_t* builder, const gr_model_context_t* context,
                   gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_model_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_MODEL_H_
