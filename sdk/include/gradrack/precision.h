// SPDX-License-Identifier: Apache-2.0
// The precision kind: a pure policy that names the dtype of each parameter and node.
//
// The host asks it about every value that the model declared as GR_FLOAT32 ("a real number"), then
// rewrites the graph and inserts casts. Invariant: same question, same answer.
#ifndef GRADRACK_PRECISION_H_
#define GRADRACK_PRECISION_H_

#include "gradrack/graph.h"
#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Which part of the step a node belongs to.
enum {
  GR_KIND_FORWARD = 0,
  GR_KIND_INPUT_GRADIENT = 1,   ///< dX: on the critical path of backward
  GR_KIND_WEIGHT_GRADIENT = 2,  ///< dW: may run late
  GR_KIND_UPDATE = 3,
  GR_KIND_COLLECTIVE = 4,
  GR_KIND_COPY = 5
};

typedef struct gr_precision_node {
  uint32_t struct_size;
  int32_t kind;  ///< GR_KIND_*
  const char* domain;
  const char* op;
  const char* stage;
} gr_precision_node_t;

typedef struct gr_precision {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// dtype in which parameters, buffers, gradients and optimizer state are kept. [plan]
  int32_t (*storage_dtype)(void* self, gr_dtype_t* out, gr_error_t* err);
  /// dtype in which this node computes and gives its floating-point results. [plan]
  int32_t (*node_dtype)(void* self, const gr_precision_node_t* node, gr_dtype_t* out,
                        gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_precision_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PRECISION_H_
