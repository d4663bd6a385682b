// SPDX-License-Identifier: Apache-2.0
// gr.precision_inputs/1, an extension of precision policies: a node's dtype by what comes into it.
//
// Asked instead of gr_precision.node_dtype where the host knows it; a policy without it decides by
// operator, kind and stage alone. `policy->get_extension(policy->self, GR_EXT_PRECISION_INPUTS)`
// gives the table or NULL; it is valid as long as the policy. Invariant: same question, same
// answer.
#ifndef GRADRACK_PRECISION_INPUTS_H_
#define GRADRACK_PRECISION_INPUTS_H_

#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_PRECISION_INPUTS "gr.precision_inputs/1"

typedef struct gr_precision_inputs {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// dtype in which this node computes and gives its floating-point results. `inputs[k]`: the dtype
  /// in which input k comes, as earlier answers made it; 0 for one that has no say, because it is
  /// left out, not floating-point, of a dtype that the model named, or kept in the storage dtype
  /// (a parameter, buffer or constant), which is cast to whatever the node computes in. [plan]
  int32_t (*node_dtype)(void* self, const gr_precision_node_t* node, const gr_dtype_t* inputs,
                        uint32_t input_count, gr_dtype_t* out, gr_error_t* err);
} gr_precision_inputs_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PRECISION_INPUTS_H_
