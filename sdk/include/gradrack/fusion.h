// SPDX-License-Identifier: Apache-2.0
// gr.fusion/1, an extension of a backend: patterns of nodes that it runs as one kernel.
//
// `backend->get_extension(backend->self, GR_EXT_FUSION)` gives the table or NULL; it is valid as
// long as the backend. The host finds the patterns in a lowered graph among nodes that the backend
// claimed, asks claim_group about each place, and prepares the ones that it says yes to as groups
// (gr_group.pattern). Invariant: a group gives what its nodes give one by one, within the
// tolerances of its operators. Values inside a group that nothing else reads get no memory.
//
// An expression is text. Statements, one a node, separated by `;`, each after those that make its
// inputs; names stand for values, the same name for the same value:
//
//     h = Add(x, y); n = RMSNormalization(h, w)
//     y = Add|Sub(x, z)                  either operator
//     y, _ = LayerNormalization(x, ...)  `_`: a result that may or may not be there
//
// Operators of a domain are written in full: gradrack.FusedMatMul. An input `_` is any value, or
// none; inputs and results that are not named must be absent, unless `...` ends their list. Add,
// Mul, Max, Min and Sum of two inputs match either order. All statements hang together by the
// values they share. Names are letters, digits and `_`, not starting with a digit.
//
// Or a set of operators in braces, for runs of any length:
//
//     {Add, Mul, Swish, gradrack.SwishGrad, Cast}
//
// matches a connected, convex set of at least two such nodes, as large as possible, whose results
// all have the same dims. Attributes and dtypes are claim_group's to judge.
//
// Patterns look through views (Reshape, Flatten, ...) and name none: a view has the id of the value
// that it shows, in the group that claim_group and prepare get, with dims of its own. A node's dims
// are those of its own ports.
//
// Patterns that come first are matched first; a node is in one group. The nodes of a match have one
// kind and one stage, unless GR_PATTERN_ACROSS says otherwise, and no path leaves a match and comes
// back. A value made inside and read outside is a result of the group, beside its last ones.
#ifndef GRADRACK_FUSION_H_
#define GRADRACK_FUSION_H_

#include "gradrack/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_FUSION "gr.fusion/1"

/// Bits of gr_pattern.flags.
enum {
  /// The nodes of a match may differ in kind (forward, gradients, update) and in stage.
  GR_PATTERN_ACROSS = 1
};

/// One pattern. The array is walked with gr_fusion.pattern_stride.
typedef struct gr_pattern {
  uint32_t struct_size;
  uint32_t flags;          ///< GR_PATTERN_* or-ed
  const char* name;        ///< as written in run files: letters, digits, `_`; unique in a backend
  const char* help;        ///< one line: what the kernel saves
  const char* expression;  ///< see the head of this file
} gr_pattern_t;

typedef struct gr_fusion {
  uint32_t struct_size;
  uint32_t pattern_count;
  void* self;
  const gr_pattern_t* patterns;  ///< first ones first matched
  uint32_t pattern_stride;       ///< bytes between two patterns
  uint32_t reserved;
  /// May these nodes be one kernel? `group` is what prepare would get: nodes in the order of the
  /// pattern's statements (of a set: in the graph's), group->pattern = 1 + `pattern`. Fills verdict
  /// and reason as gr_backend.claim does; `claim->group` is not read. [plan]
  int32_t (*claim_group)(void* self, uint32_t pattern, const gr_group_t* group, gr_claim_t* claim,
                         gr_error_t* err);
} gr_fusion_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_FUSION_H_
