// SPDX-License-Identifier: Apache-2.0
// The graph builder: how a plugin says what is to be computed. Nothing runs while a graph is built.
//
// Models, optimizers and the host all append nodes to one graph of ONNX-named operators (opset 23)
// with symbolic dimensions; what ONNX lacks lives in domain "gradrack" (see docs/operators.md).
// Structs without struct_size (gr_dim_t, gr_attr_t, gr_init_t) are frozen and never grow.
// Invariant: a value is written once; ids are dense, ascending and valid for the graph's life.
// One thread at a time per graph. A failed call leaves the graph as it was.
#ifndef GRADRACK_GRAPH_H_
#define GRADRACK_GRAPH_H_

#include "gradrack/status.h"
#include "gradrack/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gr_graph gr_graph_t;  ///< the host's
typedef int32_t gr_value_t;          ///< id of a value
enum { GR_NO_VALUE = -1 };           ///< an optional input that is left out
enum { GR_MAX_RANK = 8 };

/// One dimension: a number, or a name such as "batch" or "time" that is bound when a plan is made.
typedef struct gr_dim {
  int64_t size;        ///< used when symbol is NULL; >= 0
  const char* symbol;  ///< a name, or an expression of names in text the host gave: "2*time+1"
} gr_dim_t;

enum {
  GR_ATTR_INT = 1,
  GR_ATTR_FLOAT = 2,
  GR_ATTR_STRING = 3,
  GR_ATTR_INTS = 4,
  GR_ATTR_FLOATS = 5
};

/// Attribute of a node. The host copies it.
typedef struct gr_attr {
  const char* name;
  int32_t type;  ///< GR_ATTR_*
  int32_t reserved;
  int64_t i;
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  uint64_t count;  ///< length of ints or floats
} gr_attr_t;

/// How a parameter, buffer or state begins. Random values come from Philox keyed by (seed, name),
/// so they depend on nothing else.
enum {
  GR_INIT_CONSTANT = 0,
  GR_INIT_NORMAL = 1,
  GR_INIT_UNIFORM = 2,
  GR_INIT_PARAMETER = 3  ///< of an optimizer's state: as its parameter begins the run; since 1.1
};
typedef struct gr_init {
  int32_t kind;  ///< GR_INIT_*
  int32_t reserved;
  double a;  ///< constant; mean; low
  double b;  ///< unused; standard deviation; high
} gr_init_t;

/// What a parameter is to the optimizer's default groups; rank and name never have to be guessed
/// at.
enum { GR_ROLE_WEIGHT = 0, GR_ROLE_BIAS = 1, GR_ROLE_NORM = 2, GR_ROLE_EMBEDDING = 3 };

typedef struct gr_input {
  uint32_t struct_size;
  gr_dtype_t dtype;
  const char* name;  ///< matched with the data plugin's output of the same name
  const gr_dim_t* dims;
  uint32_t rank;
  uint32_t reserved;
  int64_t limit;  ///< integers only: values are in [0, limit); 0: no such promise
} gr_input_t;

typedef struct gr_parameter {
  uint32_t struct_size;
  gr_dtype_t dtype;      ///< GR_FLOAT32 means "the precision policy's choice"
  const char* name;      ///< dotted, unique: the key in files
  const gr_dim_t* dims;  ///< numbers only
  uint32_t rank;
  int32_t role;  ///< GR_ROLE_*
  gr_init_t init;
} gr_parameter_t;

typedef struct gr_node {
  uint32_t struct_size;
  uint32_t input_count;
  const char* domain;  ///< "" (ONNX) or "gradrack"; NULL is ""
  const char* op;      ///< "MatMul"
  const gr_value_t* inputs;
  const gr_attr_t* attrs;
  uint32_t attr_count;
  uint32_t output_count;  ///< outputs wanted; trailing optional ones may be left out
} gr_node_t;

/// Type of a value. `dims[k].symbol` is text of the host, valid for the graph's life.
typedef struct gr_type {
  uint32_t struct_size;
  gr_dtype_t dtype;
  uint32_t rank;
  uint32_t reserved;
  gr_dim_t dims[GR_MAX_RANK];
} gr_type_t;

/// The host's builder. Every call: GR_OK, or an error that names the operator, what it got and what
/// it wanted. Strings and arrays are copied.
typedef struct gr_graph_api {
  uint32_t struct_size;
  uint32_t flags;
  /// A value that each batch brings. [plan]
  int32_t (*input)(gr_graph_t*, const gr_input_t*, gr_value_t* out, gr_error_t*);
  /// A trained value. [plan]
  int32_t (*parameter)(gr_graph_t*, const gr_parameter_t*, gr_value_t* out, gr_error_t*);
  /// State that is not trained (running statistics); `role` is ignored. [plan]
  int32_t (*buffer)(gr_graph_t*, const gr_parameter_t*, gr_value_t* out, gr_error_t*);
  /// `value` becomes the content of `buffer` when the step commits. [plan]
  int32_t (*update_buffer)(gr_graph_t*, gr_value_t buffer, gr_value_t value, gr_error_t*);
  /// A host tensor (kDLCPU), copied. [plan]
  int32_t (*constant)(gr_graph_t*, const DLTensor*, gr_value_t* out, gr_error_t*);
  /// An operator; writes output_count ids to `outputs`. [plan]
  int32_t (*node)(gr_graph_t*, const gr_node_t*, gr_value_t* outputs, gr_error_t*);
  /// A named scalar loss: `sum` over targets and their number `count` (both scalars, same float
  /// dtype); up to 64 of them. The step's loss is the sum over its active objectives of weight *
  /// sum / count, with sums and counts over all microbatches. The run gives weights and turns.
  /// [plan]
  int32_t (*objective)(gr_graph_t*, const char* name, gr_value_t sum, gr_value_t count,
                       gr_error_t*);
  /// A value that evaluation, `sample` or tests may read by name ("logits"). [plan]
  int32_t (*output)(gr_graph_t*, const char* name, gr_value_t, gr_error_t*);
  /// Nodes made until the matching pop belong to stage "outer.name": the unit of scheduling,
  /// recompute, replay and freezing. [plan]
  int32_t (*push_stage)(gr_graph_t*, const char* name, gr_error_t*);
  /// Ends the innermost stage. [plan]
  int32_t (*pop_stage)(gr_graph_t*, gr_error_t*);
  /// dtype and dims of a value; `out->struct_size` set by the caller. [plan]
  int32_t (*type_of)(gr_graph_t*, gr_value_t, gr_type_t* out, gr_error_t*);
} gr_graph_api_t;

/// What a plugin gets: the table and the graph to pass to it. Valid during the call only.
typedef struct gr_builder {
  const gr_graph_api_t* api;
  gr_graph_t* graph;
} gr_builder_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_GRAPH_H_
